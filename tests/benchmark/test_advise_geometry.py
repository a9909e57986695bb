"""The study of advised signatures: equal sizes, equal settings, resumable, and how it is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from golde.config import Config
from golde.data.synthetic import mixture
from golde.geometry import Signature
from golde.report import own_graph_sections
from golde.training.defaults import resolve
from golde.training.loop import DivergedError
from tiny import quick, ring

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__("advise_geometry")
    sys.modules.pop("advise_geometry", None)


@pytest.mark.parametrize("name", ["wn18rr", "fb15k-237", "umls"])
def test_all_signatures_of_a_set_have_as_many_numbers_and_the_same_settings(
    study: Any, name: str
) -> None:
    graph = mixture(copies=30)
    config = study.base(name, graph)
    chosen = Signature.parse(config.model.signature)
    paper = {"wn18rr": "P10x36 Q13x36", "fb15k-237": "P6x28 Q23x28"}
    assert str(chosen) == paper.get(name, "P8x8 Q9x8")  # of no configuration the default
    found = study.signatures(chosen, graph)
    assert {signature.numbers for signature in found.values()} == {chosen.numbers}
    assert [term.letter for term in (*found["Euclidean"], *found["hyperbolic"])] == ["E", "Q"]
    assert found["Euclidean"].components == found["hyperbolic"].components == chosen.components
    trainings = []
    for signature in found.values():
        made = resolve(study.settings(config, graph, signature, seed=1, steps=40), graph)
        has_weight = "P" in str(signature) and name in paper
        assert made.model.weights == ({"P": 0.5} if has_weight else {})
        trainings.append(made.training)
    assert all(training == trainings[0] for training in trainings)


def trainings(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["trainings"]
    return found


def test_it_leaves_out_what_it_has_and_tries_failed_ones_again(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "base", lambda name, graph: resolve(quick(), graph))
    out, asked = tmp_path / "new" / "study.json", list[Any]()
    cut_short = [True]

    def measure(graph: Any, config: Config, device: str) -> dict[str, Any]:
        asked.append((config.training.seed, config.model.signature))
        if cut_short and config.training.seed == 1:
            raise KeyboardInterrupt
        if cut_short and config.model.signature == "Q4x4":
            raise DivergedError("the loss became nan")
        return {"validation": {"mrr": 0.25, "hits@10": 0.5}, "seconds": 1.0}

    monkeypatch.setattr(study, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        study.study({"ring": ring()}, [0, 1], 12, out, "cpu")
    *kept, failed = trainings(out)
    assert (len(kept), failed["failed"]) == (3, "the loss became nan")
    asked.clear()
    cut_short.clear()
    study.study({"ring": ring()}, [0, 1], 12, out, "cpu")
    found = trainings(out)
    assert asked == [(one["seed"], one["signature"]) for one in found[3:]]
    assert found[:3] == kept
    assert [(one["seed"], one["variant"]) for one in found] == [
        (seed, variant)
        for seed in (0, 1)
        for variant in ("chosen", "advised", "Euclidean", "hyperbolic")
    ]
    asked.clear()
    study.study({"ring": ring()}, [0, 1], 12, out, "cpu")
    assert (asked, trainings(out)) == ([], found)


def test_a_training_is_judged_on_the_whole_validation_split(study: Any) -> None:
    config = study.settings(
        resolve(quick(), ring()), ring(), Signature.parse("E4x3"), seed=3, steps=8
    )
    found = study.measure(ring(), config, "cpu")
    assert found["protocol"]["split"] == "valid"
    assert found["protocol"]["triples"] == found["protocol"]["split_triples"] == 4
    assert 0 < found["validation"]["mrr"] <= 1
    assert found["settings"]["model"]["signature"] == "E4x3"
    assert (found["settings"]["training"]["seed"], found["settings"]["training"]["steps"]) == (3, 8)


def test_differences_are_to_the_chosen_signature_at_the_same_seed() -> None:
    def one(variant: str, signature: str, seed: int, mrr: float) -> dict[str, Any]:
        return {
            "set": "wn18rr",
            "variant": variant,
            "signature": signature,
            "seed": seed,
            "steps": 2000,
            "validation": {"mrr": mrr, "hits@10": 0.5},
            "seconds": 20.0,
            "machine": {"gpu": "a GPU"},
            "versions": {"python": "3", "torch": "2", "triton": "1"},
            "commit": "0123456789abcdef",
        }

    runs = [one("chosen", "P2 Q3", 0, 0.41), one("chosen", "P2 Q3", 1, 0.43)]
    runs += [one("advised", "Q3x2", 1, 0.434), one("Euclidean", "E2x2", 0, 0.4)]
    runs.append(one("hyperbolic", "Q3x2", 0, 0.0) | {"failed": "the loss became nan"})
    text = own_graph_sections.advise_geometry({"trainings": runs})
    place = "| wn18rr, 2,000 steps | "
    assert f"{place}chosen | `P2 Q3` | 2 | **0.4200** (0.4100–0.4300) |  | 0.500 | 20 s |" in text
    assert f"{place}advised | `Q3x2` | 1 | **0.4340** | +0.0040 | 0.500 | 20 s |" in text
    assert f"{place}Euclidean | `E2x2` | 1 | **0.4000** | -0.0100 | 0.500 | 20 s |" in text
    assert "Q3x2 on wn18rr with seed 0 failed: the loss became nan. a GPU, Python 3" in text
