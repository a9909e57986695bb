"""The clock, our side of the speed comparison, the study of variants, and how figures are written."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import golde as package
from golde.config import Config
from golde.data.synthetic import random_graph
from golde.geometry import Signature
from golde.kernels import Core, Root
from golde.models import GoldE
from golde.models.kinds import KINDS
from golde.report import gpu_sections, own_graph_sections
from golde.training.defaults import resolve
from golde.training.loop import DivergedError
from tiny import quick, ring

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a benchmark by name, as if it were run from its folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return __import__(name)

    yield load
    for name in (
        "common",
        "golde_side",
        "gpu_accuracy",
        "gpu_budget",
        "levers",
        "pykeen_speed",
        "complete_heads",
        "shown_answers",
    ):
        sys.modules.pop(name, None)


def test_the_clock_leaves_warm_up_out(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    common = load("common")
    ticks = iter([10.0, 11.0, 12.0, 12.5, 13.0, 14.0])
    monkeypatch.setattr(common.time, "perf_counter", lambda: next(ticks))
    meter = common.Meter(warmup=2.0, seconds=1.5)
    ends = [meter.tick(work) for work in (1000, 1000, 1000, 3, 4, 5)]
    assert ends == [False] * 5 + [True]
    assert meter.steps == 3
    assert meter.rate == 12 / 2.0


def test_a_loop_too_short_to_measure_is_an_error(load: Any) -> None:
    meter = load("common").Meter(warmup=0.0, seconds=1.0)
    meter.tick(1)
    with pytest.raises(RuntimeError, match="before anything was measured"):
        _ = meter.rate


def test_a_turn_of_ours_has_every_figure(load: Any) -> None:
    graph = random_graph(600, 4, 3000, held_out=0.1)
    job = {
        "signature": "P2x2 Q3x2",
        "negatives": 64,
        "set": [],
        "train_batch_sizes": [256],
        "trial": False,
        "sample": [5, 3, 8],
        "seed": 1,
        "warmup": 0.0,
        "seconds": 0.05,
    }
    turn = load("golde_side").turn(graph, job)
    asked = {"candidates": 64, "batch_size": 256}
    assert {key: turn["train"][0][key] for key in asked} == asked
    assert turn["train_default"]["candidates"] == resolve(Config(), graph).training.negatives
    rates = [turn["train"][0]["rate"], turn["train_default"]["rate"]]
    rates += [turn["evaluate"], turn["evaluate_sample"]]
    assert min(rates) > 0


def test_both_sides_have_as_many_numbers(load: Any) -> None:
    for numbers, signature in load("pykeen_speed").SIGNATURES.items():
        assert Signature.parse(signature).numbers == numbers


def test_ratios_compare_turns_that_followed_each_other(load: Any) -> None:
    speed = load("pykeen_speed")

    def ours(rate: float) -> dict[str, Any]:
        trained = {"rate": rate, "batch_size": 8, "candidates": 64, "compiled": False}
        both = {"train": [trained], "train_default": trained}
        return both | {"evaluate": rate, "evaluate_sample": rate}

    def theirs(rate: float) -> dict[str, Any]:
        figure = [{"rate": rate, "batch_size": 16}]
        return {"train": figure, "evaluate": figure, "versions": {}}

    turns = [(ours(100), theirs(10)), (ours(30), theirs(1)), (ours(40), theirs(2))]
    job = {"negatives": 64, "sample": [0, 1]}
    trials = {"golde": {"train": ours(1)["train"]}, "pykeen": theirs(5)}
    result = speed.summarise("tiny", 128, 7, job, trials, turns)
    assert result["ratio"]["train"] == 20.0
    assert result["golde"]["train"]["median"] == 40
    assert result["golde"]["evaluate"]["test_facts"] == 7
    assert "| tiny | 128 | test queries/s | 40 (30–100) | 2 (1–10) | 20.0× | 5× |" in speed.table(
        [result]
    )


def test_a_run_of_one_size_leaves_the_others(load: Any, tmp_path: Path) -> None:
    replaced, path = load("common").replaced, tmp_path / "speed.json"
    key = "dataset", "numbers"
    one, two, newer = (
        {"dataset": "umls", "numbers": n, "commit": c}
        for n, c in ((128, "a"), (512, "a"), (512, "b"))
    )
    assert replaced(path, [one, two], *key) == [one, two]
    path.write_text(json.dumps({"results": [one, two]}))
    assert replaced(path, [newer], *key) == [one, newer]


GPU = {
    "machine": {"gpu": "a GPU"},
    "versions": {"python": "3", "torch": "2", "triton": "1"},
    "commit": "0123456789abcdef",
    "settings": {"repeats": 60},
}


def test_a_step_is_written_with_what_has_no_time() -> None:
    figures = {"ms": 3.14159, "pairs_per_second": 2.5e9, "memory_beyond_state_mb": 1234}
    found = {
        **GPU,
        "forms": {
            "plain": figures | {"captured": True},
            "fused": {"failed": "loss differs"},
            "plain compiled": {"skipped": "no compiler"},
        },
        "sizes": {"batch 250": figures},
        "evaluation": {"queries": 6268, "seconds": 0.0601},
    }
    text = gpu_sections.gpu_step(found)
    assert "| plain | **3.14 ms** | 2,500 M | 1,234 MiB |" in text
    assert "| fused | failed |  |  |" in text
    assert "| plain compiled | skipped |  |  |" in text
    assert "| batch 250 | **3.14 ms** |" in text
    assert "As one CUDA graph: plain." in text
    assert "commit `0123456789`" in text


def test_a_roofline_is_written_with_shares_of_the_ceilings() -> None:
    kinds = ("bytes", "fp32", "special", "tensor")
    kernel = {"kernel": "forward_kernel", "ms": 0.3, "share": 0.125, "bound": "special"}
    kernel["operations"] = dict(zip(kinds, (2e7, 3.1e9, 3.2e8, 0), strict=True))
    kernel["reached"] = dict(zip(kinds, (0.02, 0.31, 0.27, 0), strict=True))
    slow = kernel | {"kernel": "pack_kernel", "bound": None}
    other = {"kernel": "between kernels", "ms": 0.1, "share": 0.04}
    found = {
        **GPU,
        "ceilings": dict(zip(kinds, (4.1e12, 33e12, 4.05e12, 390e12), strict=True)),
        "profiles": {
            "P10x36 Q13x36": {"kernels": [kernel, slow, other]},
            "Q13x36": {"kernels": [kernel, other]},
        },
    }
    text = gpu_sections.gpu_roofline(found)
    cells = "| `forward_kernel` | 0.300 ms | 12% | 0.02 GB, 2% | 3.1 G, 31% | 0.32 G, 27% |  |"
    assert f"{cells} special |" in text
    assert "| `pack_kernel` | 0.300 ms | 12% |" in text
    assert "none of these |" in text
    assert text.count("between kernels") == 1  # of the whole step alone
    assert "`Q13x36` alone:" in text
    assert "4.10 TB/s of copying" in text


@pytest.fixture
def accuracy(load: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The study of variants with a ring in place of WN18RR."""
    module: ModuleType = load("gpu_accuracy")
    tiny = quick().model_dump(exclude_none=True)
    published = {"model": tiny["model"], "training": {"batch_size": 10, "learning_rate": 0.02}}
    monkeypatch.setattr(module, "SETS", {"ring": published})
    monkeypatch.setattr(module, "load_graph", lambda name: ring())
    return module


def trainings(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["trainings"]
    return found


def test_published_sizes_make_a_run(load: Any) -> None:
    module = load("gpu_accuracy")
    for name in module.SETS:
        config = module.settings(name, ring(), seed=3, steps=40)
        resolve(config, ring())
        assert config.training.seed == 3


def test_a_variant_ends_where_it_began(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch, PyTorch's precision, that of the kernels and the model, also after an error."""
    module = load("gpu_accuracy")
    kernels = "golde.kernels.triton."
    monkeypatch.setattr(f"{kernels}distance._fused", lambda finish, norm, precision, *_: precision)
    monkeypatch.setattr(f"{kernels}batch.launch_tiles", lambda *_: None)
    monkeypatch.setattr(
        f"{kernels}batch._batch", lambda groups, settings, *_: [[settings["precision"]]] * 2
    )
    side = Core(torch.rand(1, 2, 3), ())

    def state() -> tuple[str | None, str, str, str]:
        used = module.fused_pairwise(side, side, Root(), 1)
        in_a_step = module.fused_batch(torch.rand(1), None, [], [[[]]], norm=1, own=False)[0]
        assert used == in_a_step
        switch, precision = os.environ.get("GOLDE_KERNELS"), torch.get_float32_matmul_precision()
        return switch, precision, used, KINDS["golde"].__name__

    before, seen = state(), []
    for variant in module.VARIANTS.values():
        with suppress(DivergedError), module.in_force(variant):
            seen.append(state())
            raise DivergedError
        assert state() == before
    assert seen == [
        ("plain", "highest", "tf32x3", "GoldE"),
        ("plain", "high", "tf32x3", "GoldE"),
        ("fused", "highest", "tf32x3", "GoldE"),
        ("fused", "highest", "tf32", "GoldE"),
        ("plain", "highest", "tf32x3", "PublishedBeta"),
    ]


def test_a_study_keeps_what_it_has_and_goes_on(
    accuracy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, variants = tmp_path / "new" / "study.json", ("plain-float32", "published-beta")
    measured = accuracy.measure

    def cut(graph: Any, config: Config, device: str) -> dict[str, Any]:
        if config.training.seed == 1:
            raise KeyboardInterrupt
        if KINDS["golde"] is not GoldE:  # the lever of the second variant is in force
            raise DivergedError("the loss became nan")
        figures: dict[str, Any] = measured(graph, config, device)
        return figures

    monkeypatch.setattr(accuracy, "measure", cut)
    with pytest.raises(KeyboardInterrupt):
        accuracy.study(["ring"], variants, [0, 1], 12, out, device="cpu")
    first, failed = trainings(out)
    assert failed["failed"] == "the loss became nan"
    monkeypatch.setattr(accuracy, "measure", measured)
    accuracy.study(["ring"], variants, [0, 1], 12, out, device="cpu", resume=True)
    found = trainings(out)
    assert found[0] == first
    assert [(one["seed"], one["variant"]) for one in found] == [
        (seed, variant) for seed in (0, 1) for variant in variants
    ]
    for one in found:
        assert one["protocol"]["split"] == "valid"
        assert one["protocol"]["triples"] == one["protocol"]["split_triples"] == 4
        assert 0 < one["validation"]["mrr"] <= 1
        assert 0 < one["score_error"] < 1e-5
        assert one["step_ms"] > 0
        assert one["settings"]["training"]["steps"] == 12


def test_variants_are_rendered_beside_plain_float32() -> None:
    def one(variant: str, seed: int, mrr: float) -> dict[str, Any]:
        return {
            "set": "wn18rr",
            "variant": variant,
            "seed": seed,
            "steps": 2000,
            "validation": {"mrr": mrr},
            "score_error": 3e-7,
            "step_ms": 4.0 + seed,
            "seconds": 20.0,
            "machine": {"gpu": "a GPU"},
            "versions": {"python": "3", "torch": "2", "triton": "1"},
            "commit": "0123456789abcdef",
        }

    runs = [one("plain-float32", 0, 0.41), one("plain-float32", 1, 0.43), one("fused", 1, 0.432)]
    runs.append(one("fused-tf32", 0, 0.0) | {"failed": "the loss became nan"})
    text = gpu_sections.gpu_accuracy({"trainings": runs})
    place = "| wn18rr, 2,000 steps | "
    plain = "plain-float32 | **0.4200** (0.4100–0.4300) |  | 3e-07 | 4.50 ms | 20 s |"
    assert place + plain in text
    assert f"{place}fused | **0.4320** | +0.0020 | 3e-07 | 5.00 ms | 20 s |" in text
    assert "fused-tf32 on wn18rr with seed 0 failed: the loss became nan. a GPU; Python 3" in text


def test_the_rule_that_asks_best_on_validation_is_chosen_and_written(load: Any) -> None:
    module = load("complete_heads")
    hits = dict.fromkeys(module.rules(), 10)
    hits |= {"known": 90, module.kind(0.9, 3.0): 80, module.kind(0.5, 2.0): 30}

    def counted(found: int) -> dict[str, Any]:
        return {
            "queries": 1200,
            "seconds": 2.4,
            "found": dict.fromkeys(map(str, module.BEST), found),
        }

    validation = {rule: counted(found) for rule, found in hits.items()}
    chosen = module.choose({"umls": validation, "world": validation})
    assert chosen == "kind, s = 0.5, t = 2"  # others find more, but by larger shares or known heads
    rules = ("known", "all", chosen)
    one = {"facts": {"test": 661}, "settings": {"training": {"steps": 50}}}
    one |= {"validation": validation, "test": {rule: counted(7) for rule in rules}}
    found = {**GPU, "machine": {"cpu": "a CPU", "cores": 2}, "seed": 0, "chosen": chosen}
    text = own_graph_sections.complete_heads(found | {"chosen_by": 1000, "results": {"umls": one}})
    cells = "1,200 | 2 s | 7 | 7 | 7 | 7 |"
    assert f"| umls (661) | **the right kind that lacks an answer** | {cells}" in text
    assert "| kind, s = 0.5, t = 2 | 30 |" in text


def test_paths_are_written_whatever_beams_a_set_was_asked_with() -> None:
    where = {**GPU, "machine": {"cpu": "a CPU", "cores": 2}}
    settings = {"model": {"signature": "E2"}, "training": {"steps": 1000}}
    judged = {"asked": 20, "paths": 7, "right_ends": 75, "wrong_ends": 515}
    judged["results"] = {"composed maps": {"ece": 0.0301, "brier": 0.1102}}

    def one(name: str, ways: list[str], probabilities: dict[str, Any]) -> dict[str, Any]:
        figures = {way: {"figures": {"mrr": 0.5, "chance_mrr": 0.01}} for way in ways}
        about = {"set": name, "hops": 2, "seed": 0, "queries": 500, "settings": settings}
        return where | about | {"results": figures, "probabilities": probabilities}

    few = ["composed maps", "frequency in the last hop"]
    more = ["composed maps", "beam of 4", "frequency in the last hop"]
    none = {"asked": 20, "paths": 0}
    text = own_graph_sections.paths(
        {"protocol": "filtered", "results": [one("umls", few, none), one("world", more, judged)]}
    )
    heads = "| set | hops | composed maps | beam of 4 | frequency in the last hop | chance |"
    assert heads in text
    assert "| umls | 2 | 0.500 |  | 0.500 | 0.010 |" in text
    assert "| world | 2 | 0.500 | 0.500 | 0.500 | 0.010 |" in text
    assert "| world | 2 | 0.030, 0.110 | 7 of 20 | 75 | 515 |" in text
    assert text.count("umls: 500 answers, `E2`, 1,000 steps, seed 0") == 1


def test_a_short_training_is_timed_from_its_command_and_tested_once(
    load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("gpu_budget")
    called = []

    def golde(*arguments: str, cache: str) -> float:
        called.append(arguments)
        if arguments[0] == "train":
            package.train(ring(), arguments[3], quick(seed=4), device="cpu")
        else:
            package.load_run(arguments[1], device="cpu").evaluate("test", baselines=False)
        return 10.0 * len(called)

    monkeypatch.setattr(module, "golde", golde)
    found = module.measure("ring", Path("some.toml"), 4, "cpu")
    trained, tested = called
    assert trained[:3] == ("train", "ring", "--out")
    assert {"some.toml", "training.seed=4"} <= set(trained)
    assert tested[:2] == ("evaluate", trained[3])
    assert found["seconds"] == 10.0  # of the training alone
    assert found["settings"]["training"]["seed"] == found["seed"] == 4
    assert 0 < found["test"]["both"]["mrr"] <= 1


def test_without_a_gpu_the_short_training_says_so(load: Any, tmp_path: Path) -> None:
    module = load("gpu_budget")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["gpu_budget.py", "--out", str(tmp_path / "found.json")])
        with pytest.raises(SystemExit, match="no GPU"):
            module.main()
    assert not any(tmp_path.iterdir())
