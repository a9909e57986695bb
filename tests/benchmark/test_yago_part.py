"""Training at the size of YAGO3-10: entities only listed, what is written down, and how it is shown."""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from golde.errors import GoldeError
from golde.report.yago_part import yago_part
from golde.training.loop import DivergedError
from tiny import ring

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__("yago_part")
    for name in ("yago_part", "trainings", "common"):
        sys.modules.pop(name, None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The ring as files, with a list of its entities and two more."""
    graph = ring()
    folder = tmp_path / "ring-part"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        facts = graph.split(split).tolist()
        names = ((graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in facts)
        (folder / f"{split}.tsv").write_text("".join("\t".join(fact) + "\n" for fact in names))
    (folder / "entities.txt").write_text("unheard\n" + "\n".join(graph.entities.names) + "\nof\n")
    return folder


def run(module: Any, folder: Path) -> list[dict[str, Any]]:
    out = folder.parent / "found.json"
    given = ["--steps", "20", "--device", "cpu", "--configs", "yago3-10-k32", "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["yago_part.py", str(folder), *given])
        module.main()
    found: list[dict[str, Any]] = json.loads(out.read_text())["trainings"]
    return found


def test_entities_that_are_only_listed_come_after_the_others(module: Any, folder: Path) -> None:
    plain = module.load_graph(folder)
    graph = module.part_with_all_entities(folder)
    assert graph.entities.names == (*plain.entities.names, "unheard", "of")
    assert graph.train.equal(plain.train)
    listed = folder / "entities.txt"
    (folder / "entities.txt.xz").write_bytes(lzma.compress(listed.read_bytes()))
    listed.unlink()
    assert module.part_with_all_entities(folder).entities.names == graph.entities.names


def test_a_folder_without_the_list_is_refused(module: Any, folder: Path) -> None:
    (folder / "entities.txt").unlink()
    with pytest.raises(GoldeError, match=r"entities\.txt"):
        module.part_with_all_entities(folder)


def test_without_data_or_a_gpu_nothing_is_written(
    module: Any, tmp_path: Path, folder: Path
) -> None:
    cases = {"nowhere": ["--device", "cpu"], str(folder): ["--device", "cuda"]}
    if torch.cuda.is_available():
        del cases[str(folder)]
    for place, words in cases.items():
        out = tmp_path / "new" / "found.json"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["yago_part.py", place, *words, "--out", str(out)])
            with pytest.raises(SystemExit, match=r"^yago_part\.py: .*(nowhere|no CUDA device)"):
                module.main()
        assert not out.parent.exists()


def test_a_training_is_written_down_once_and_shown(module: Any, folder: Path) -> None:
    (one,) = run(module, folder)
    assert (one["entities"], one["facts"], one["graph"]) == (22, 32, "ring-part")
    assert one["settings"]["training"]["steps"] == one["steps"] == one["curve"][-1]["step"] == 20
    assert len(one["curve"]) == 10
    assert one["device_gib"] is None  # of a GPU
    assert one["settings"]["evidence"]["hops"] == 0  # of training, so that its figures are its own
    assert one["evidence"]["hops"] == 2
    assert 0 < one["evidence"]["mrr"] <= 1
    assert one["commit"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "measure", None)  # must not be called again
        assert run(module, folder) == [one]
        out = folder.parent / "found.json"
        before = json.loads(out.read_text())
        before["trainings"][0]["settings"]["model"]["curvature"] = "learned"  # a setting of before
        out.write_text(json.dumps(before))
        assert run(module, folder) == before["trainings"]
    assert "ring-part, 32 training facts among 22 entities" in yago_part({"trainings": [one]})


def test_every_cell_is_shown_in_its_place() -> None:
    one = {
        **{"configuration": "c", "graph": "g", "seed": 7, "steps": 9000, "entities": 5, "facts": 6},
        **{"seconds": 61.4, "queries_per_second": 12345.0, "device_gib": 2.34, "rank_s": 0.46},
        "losses": [{"mean": 3.0, "largest": 4.0}, {"mean": 2.0, "largest": 2.5}],
        "curve": [{"step": step, "mrr": step / 10} for step in (1, 2, 3, 4)],
        "machine": {"cpu": "a CPU", "gpu": "a GPU"},
        "versions": {"python": "3", "torch": "2"},
        "commit": "0123456789abcdef",
    }
    text = yago_part({"trainings": [one]})
    cells = (
        "`c` | 9,000 | **61 s** | 12,345 | 2.3 GiB | 0.5 s | 3.000 | 2.000 | 2.500 | 0.200 | 0.400"
    )
    assert f"| {cells} |" in text
    assert "**Not YAGO3-10**" in text
    assert "Evidence, which the configurations ask for, was not gathered. Seed 7." in text
    gathered = {"hops": 2, "seconds": 71.2, "rank_s": 3.21, "device_gib": 1.26, "mrr": 0.456}
    assert (
        "Evidence of up to 2 training facts in a row, gathered after `c`, took 71 s and 1.3 GiB, its ranking "
        "3.2 s; with it MRR is 0.456. Seed 7."
    ) in yago_part({"trainings": [one | {"evidence": gathered}]})
    assert "Seed 7. a GPU, Python 3, torch 2, commit 0123456;" in text


def test_losses_are_summed_up_in_ten_stretches(module: Any) -> None:
    found = module._stretches([float(i) for i in range(105)])
    assert len(found) == 10
    assert found[0] == {"mean": 4.5, "largest": 9.0}
    assert found[-1] == {"mean": 99.0, "largest": 104.0}
    assert [one["mean"] for one in module._stretches([3.0, 4.0])] == [3.0, 4.0]


def test_a_training_that_fails_is_said_so(module: Any, folder: Path) -> None:
    def diverged(*given: Any, **named: Any) -> None:
        raise DivergedError("the loss is nan")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "measure", diverged)
        (one,) = run(module, folder)
    assert "`yago3-10-k32` failed: the loss is nan." in yago_part({"trainings": [one]})
