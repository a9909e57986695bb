"""Extending a run: an exact start where maps are exact, what was trained untouched, a complete new run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import golde
from golde.analysis.links import Links
from golde.analysis.relation_geometry import relation_geometry
from golde.analysis.rules import find_rules
from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import DataError, GoldeError, RunError
from golde.inference import Run
from golde.models import Model, build
from golde.runs import RunFolder
from golde.training.extend import extend, grow, place_new
from oracles import randomised
from tiny import left_by_a_kill, quick, ring

MODELS: dict[str, dict[str, Any]] = {
    "golde": {},
    "paper": {"signature": "E2x2 Q3x2", "reciprocal": False, "bias": True, "norm": 2},
    "loops": {"loop_bias": True},
    "transe": {"kind": "transe", "signature": None, "numbers": 6},
    "distmult": {"kind": "distmult", "signature": None, "numbers": 6},
    "complex": {"kind": "complex", "signature": None, "numbers": 6, "bias": True},
}
NEWS = [
    ("e4", "next", "new"),
    ("new", "next", "newer"),
    ("new", "back", "e4"),
    ("e0", "back", "e9"),
]


def orbit(settings: dict[str, Any], length: int) -> Model:
    """A model that fits ``i next i + 1`` exactly: every row is the one before, led on by the relation."""
    config = ModelConfig(reciprocal=False, **settings)
    model: Model = randomised(build(config, length, 1), seed=3, scale=0.4)
    with torch.no_grad():
        for i in range(1, length):
            model.entity[i] = model.transport(model.entity[i - 1 : i], torch.tensor([0]))[0]
    return model


def train_tiny(folder: Path, **model: Any) -> Run:
    return golde.train(ring(), folder, quick(model), device="cpu")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train_tiny(tmp_path_factory.mktemp("extend") / "run")


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "transe", "numbers": 3},
        *({"signature": signature} for signature in ("E3x2", "P3x2", "Q4x2", "E2 P3x2 Q3x2")),
    ],
    ids=lambda settings: settings.get("signature", settings.get("kind")),
)
def test_the_start_is_exact_where_the_maps_are(settings: dict[str, Any]) -> None:
    """The last three of a learned line, of which only the first is beside a known entity."""
    whole = orbit(settings, 8)
    known, truth = 5, whole.entity.detach().clone()
    whole.entity = torch.nn.Parameter(truth[:known].clone())
    grow(whole, 8)
    facts = torch.tensor([[6, 0, 7], [4, 0, 5], [5, 0, 6]])
    placement = place_new(whole, facts, known)
    assert (placement.sweeps, len(placement.adrift)) == (3, 0)
    torch.testing.assert_close(whole.entity.detach(), truth, rtol=1e-7, atol=1e-7)
    assert torch.equal(whole.entity[:known], truth[:known])


def test_a_row_is_the_mean_over_heads_and_tails() -> None:
    """From neighbours on both sides, those of later sweeps left out; who has none stays at the mean."""
    model = build(ModelConfig(kind="transe", numbers=2, reciprocal=False), 3, 1)
    with torch.no_grad():
        model.relation.copy_(torch.tensor([[1.0, 0.0]]))
        model.entity.copy_(torch.tensor([[0.0, 0.0], [4.0, 2.0], [5.0, 7.0]]))
    grow(model, 7)
    # 3 lies after 0 and before 1; 4 is beside 3 alone; 5 and 6 know each other alone.
    facts = torch.tensor([[0, 0, 3], [3, 0, 1], [3, 0, 4], [5, 0, 6]])
    placement = place_new(model, facts, 3)
    expected = [[2.0, 1.0], [3.0, 1.0], [3.0, 3.0], [3.0, 3.0]]
    torch.testing.assert_close(model.entity[3:].detach(), torch.tensor(expected))
    assert placement.sweeps == 2
    assert placement.adrift.tolist() == [5, 6]


@pytest.mark.parametrize("name", MODELS)
def test_what_was_trained_is_untouched_and_the_new_run_is_whole(name: str, tmp_path: Path) -> None:
    run = train_tiny(tmp_path / "run", **MODELS[name])
    before = {path: path.read_bytes() for path in run.folder.path.iterdir()}
    new = golde.extend(run.folder.path, NEWS, tmp_path / "new", steps=5, device="cpu")
    assert {path: path.read_bytes() for path in run.folder.path.iterdir()} == before
    known = len(run.graph.entities)
    old = run.model.state_dict()
    for key, value in new.model.state_dict().items():
        grown = key in ("entity", "query_bias", "answer_bias")
        assert torch.equal(value[:known] if grown else value, old[key])
        if grown:
            assert value.shape[0] == known + 2
            assert value.isfinite().all()
    start = golde.extend(run.folder.path, NEWS, tmp_path / "start", steps=0, device="cpu")
    moved = new.model.entity[known:] - start.model.entity[known:]
    assert (moved.abs().amax(1) > 0).all()
    assert new.graph.entities.names == (*run.graph.entities.names, "new", "newer")
    assert len(new.graph.train) == len(run.graph.train) + len(NEWS)
    assert new.folder.about()["digest"] == new.graph.digest
    assert new.evaluate("test", bootstrap=0).metrics["both"]["count"] == 2 * len(ring().test)
    found = new.predict("e4", "next", top=22)
    assert {"new", "newer"} <= {answer.tail for answer in found}
    assert {a.tail for a in found if a.known == "train"} == {"e5", "new"}
    assert new.score([NEWS[0]])[0] == pytest.approx(
        next(a.score for a in found if a.tail == "new"), abs=1e-4
    )
    assert all(p.fact not in NEWS for p in new.complete(1000))
    new.export(tmp_path / "rows.tsv", "tsv")
    assert len((tmp_path / "rows.tsv").read_text("utf-8").splitlines()) == known + 2


def test_run_json_says_what_was_added_to_what(tiny: Run, tmp_path: Path) -> None:
    file = tmp_path / "news.tsv"
    lost = [("lost", "next", "found"), NEWS[0]]  # the second for the second time
    file.write_text("".join("\t".join(fact) + "\n" for fact in [*NEWS, *lost]), "utf-8")
    new = golde.extend(tiny.folder.path, file, tmp_path / "new", steps=3, device="cpu")
    about, before = new.folder.about(), tiny.folder.about()
    (record,) = about["extensions"]
    told = {
        "from": str(tiny.folder.path),
        "from_digest": before["digest"],
        "facts_from": str(file),
        "new_entities": 4,
        "new_facts": 5,
        "between_known": 1,
        "repeated": 1,
        "sweeps": 2,
        "adrift": 2,
        "adrift_names": ["lost", "found"],
        "steps": 3,
    }
    assert {key: record[key] for key in told} == told
    card = (tmp_path / "new" / "MODEL_CARD.md").read_text("utf-8")
    assert "| extended without training | 4 entities, 5 facts, 3 local steps |" in card
    kept = ("finished", "steps", "chosen_step", "validation", "environment")
    assert [about[key] for key in kept] == [before[key] for key in kept]
    again = golde.extend(
        new.folder.path, [("newer", "next", "newest")], tmp_path / "again", device="cpu"
    )
    first, second = again.folder.about()["extensions"]
    assert (first, second["from"], second["steps"]) == (record, str(tmp_path / "new"), 100)


def test_facts_between_known_entities_become_known_and_move_nothing(
    tiny: Run, tmp_path: Path
) -> None:
    new = golde.extend(tiny.folder.path, [("e0", "next", "e9")], tmp_path / "new", device="cpu")
    for key, value in new.model.state_dict().items():
        assert torch.equal(value, tiny.model.state_dict()[key])
    (known,) = (a.known for a in new.predict("e0", "next", top=20) if a.tail == "e9")
    assert known == "train"
    assert new.folder.about()["extensions"][0]["steps"] == 0


def test_new_entities_are_found_by_facts_they_were_not_given(tmp_path: Path) -> None:
    """A grid: of each corner of a block one step is told, and the others follow."""
    side = 6

    def steps(i: int, j: int) -> list[tuple[str, str, str]]:
        here, found = f"{i},{j}", []
        for name, back, (x, y) in (("right", "left", (i, j + 1)), ("down", "up", (i + 1, j))):
            if x < side and y < side:
                found += [(here, name, f"{x},{y}"), (f"{x},{y}", back, here)]
        return found

    facts = [fact for i in range(side) for j in range(side) for fact in steps(i, j)]
    new = {"1,1", "3,4", "4,2"}
    rest = [fact for fact in facts if not {fact[0], fact[2]} & new]
    about = [fact for fact in facts if {fact[0], fact[2]} & new]
    given = [fact for fact in about if fact[1] in ("right", "up")]
    config = quick(
        {"signature": "P4x3 Q5x3"}, steps=400, batch_size=128, negatives=36, validate_every=0
    )
    graph = KnowledgeGraph.from_triples(rest, name="grid")
    run = golde.train(graph, tmp_path / "run", config, device="cpu")
    added = golde.extend(tmp_path / "run", given, tmp_path / "new", device="cpu")
    assert run.graph.entities.names == added.graph.entities.names[:-3]
    ranks = []
    for head, relation, tail in (fact for fact in about if fact not in given):
        for answers, truth in (
            ([a.tail for a in added.predict(head, relation, known="drop", top=36)], tail),
            ([a.head for a in added.predict(None, relation, tail, known="drop", top=36)], head),
        ):
            ranks.append(1 + answers.index(truth))
    assert sum(1 / rank for rank in ranks) / len(ranks) > 0.7  # 0.12 by chance


def test_mistakes_are_named_and_leave_nothing(tiny: Run, tmp_path: Path) -> None:
    old, out = tiny.folder.path, tmp_path / "new"
    file = tmp_path / "news.tsv"
    file.write_text("e1\tnext\tnew\nnew\tnexxt\te2\n", "utf-8")
    with pytest.raises(
        DataError, match=r"news\.tsv:2: unknown relation 'nexxt'; did you mean 'next'"
    ):
        golde.extend(old, file, out)
    (headed := tmp_path / "headed.csv").write_text("item,property,value\ne1,next,new\n", "utf-8")
    hint = "if it is a header row, give --columns item,property,value"
    with pytest.raises(DataError, match=rf"headed\.csv:1: unknown relation 'property'.*{hint}"):
        golde.extend(old, headed, out)
    headed.unlink()
    with pytest.raises(DataError, match=r"none\.tsv: cannot be read"):
        golde.extend(old, tmp_path / "none.tsv", out)
    with pytest.raises(GoldeError, match=r"facts\[0\]: unknown relation 'neext'"):
        golde.extend(old, [("e1", "neext", "new")], out)
    with pytest.raises(GoldeError, match=r"facts\[1\] is \('e1', 'next', ''\)"):
        golde.extend(old, [NEWS[0], ("e1", "next", "")], out)
    with pytest.raises(GoldeError, match="nothing to add"):
        golde.extend(old, [("e5", "next", "e6")], out)
    with pytest.raises(GoldeError, match="nothing to add"):
        golde.extend(old, [], out)
    with pytest.raises(GoldeError, match="steps is -1"):
        golde.extend(old, NEWS, out, steps=-1)
    with pytest.raises(RunError, match="choose another --out"):
        golde.extend(old, NEWS, old)
    with pytest.raises(RunError, match="no run here"):
        golde.extend(tmp_path / "none", NEWS, out)
    assert [path.name for path in tmp_path.iterdir()] == ["news.tsv"]


@pytest.mark.parametrize("out", ["file", "file/new", "file/new/er"])
def test_a_place_that_cannot_be_is_refused_before_any_step(
    out: str, tiny: Run, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")

    def never(done: int, total: int) -> None:
        raise AssertionError("a local step was made")

    with pytest.raises(RunError, match=r"cannot be made a run folder: .*; choose another place"):
        extend(tiny.folder.path, NEWS, tmp_path / out, progress=never)
    assert (tmp_path / "file").read_text() == "mine"


def test_what_was_made_for_a_run_that_fails_is_removed(tiny: Run, tmp_path: Path) -> None:
    with pytest.raises(GoldeError, match="nothing to add"):
        golde.extend(tiny.folder.path, [], tmp_path / "deep" / "down" / "new")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
import golde
from golde.runs import folder
write_json, write_tensors = folder.write_json, folder.write_tensors
def kill_before(write):
    def maybe(path, *more):
        if path.name == sys.argv[3]:
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, *more)
    return maybe
folder.write_json, folder.write_tensors = map(kill_before, (write_json, write_tensors))
golde.extend(sys.argv[1], [("e4", "next", "new")], sys.argv[2], steps=1)
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal there")
@pytest.mark.parametrize("file", ["model.safetensors", "run.json"])
def test_a_killed_extension_can_be_made_again(file: str, tiny: Run, tmp_path: Path) -> None:
    out = tmp_path / "new"
    words = [sys.executable, "-c", KILLED, str(tiny.folder.path), str(out), file]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    left_by_a_kill(out / file)  # as if it had come in the midst of writing
    assert (out / "vocabulary.json").exists()
    golde.extend(tiny.folder.path, NEWS, out, steps=1)
    assert golde.load_run(out, device="cpu").predict("new", "next")
    assert not list(out.glob("*.partial"))


def test_a_model_without_numbers_is_named(tiny: Run, tmp_path: Path) -> None:
    shutil.copytree(tiny.folder.path, tmp_path / "nan")
    folder = RunFolder(tmp_path / "nan")
    model = folder.load_model()
    with torch.no_grad():
        model.entity[3, 1] = torch.nan
    folder.save_model(model)
    run = golde.load_run(folder.path, device="cpu")
    with pytest.raises(GoldeError, match=r"entity holds what is no finite number; .* diverged"):
        golde.extend(folder.path, NEWS, tmp_path / "new")
    with pytest.raises(GoldeError, match="diverged"):
        run.export(tmp_path / "e.npz", "npz")
    with pytest.raises(GoldeError, match="diverged"):
        find_rules(run.model, Links(run.graph))
    with pytest.raises(GoldeError, match="diverged"):
        relation_geometry(run.model, run.graph)
    assert [path.name for path in tmp_path.iterdir()] == ["nan"]


def test_a_run_that_has_not_finished_is_refused(tiny: Run, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    environment = tiny.folder.about()["environment"]
    folder.create(tiny.config, tiny.graph, {"environment": environment, "finished": False})
    with pytest.raises(RunError, match="training has not finished"):
        golde.extend(folder.path, NEWS, tmp_path / "new")
    assert not (tmp_path / "new").exists()
