"""A run that was stopped, killed or started twice ends where the uninterrupted one ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError, RunError
from golde.kernels import can_compile
from golde.runs import RunFolder
from golde.training import StoppedError, train
from tiny import left_by_a_kill, quick, ring

TIMING = {"queries_per_second", "seconds"}


def after(calls: int) -> Callable[[], bool]:
    """A wish to stop that comes at the given call, that is, after so many steps."""
    count = 0

    def should_stop() -> bool:
        nonlocal count
        count += 1
        return count >= calls

    return should_stop


def stopped(out: Path, config: Config, steps: int, graph: KnowledgeGraph | None = None) -> None:
    with pytest.raises(StoppedError):
        train(graph or ring(), out, config, resume=True, should_stop=after(steps))


def outcome(folder: RunFolder) -> tuple[bytes, list[dict[str, Any]], dict[str, Any]]:
    """Everything a run leaves behind that is not a matter of time."""
    lines = [json.loads(line) for line in folder.log.read_text().splitlines()]
    log = [{k: v for k, v in line.items() if k not in TIMING} for line in lines]
    about = {k: v for k, v in folder.about().items() if k != "seconds"}
    return (folder.path / "model.safetensors").read_bytes(), log, about


# The last is saved where nothing is validated, so every step up to the end counts.
VARIANTS = {
    "default": quick(),
    "last": quick(validate_every=0),
    "patient": quick(patience=1, validate_every=2, learning_rate=0.3),
    "other loss": quick(
        {"bias": True, "loop_bias": True, "reflections": "k-1", "reciprocal": False},
        loss="cross-entropy",
        precision="float64",
        negatives=0,
        validate_every=0,
    ),
    "penalty": quick(regulariser="n3", regulariser_weight=0.1, validate_every=0),
    "lazy": quick(optimiser="lazy-adam"),
}


@pytest.fixture(scope="module", params=VARIANTS)
def uninterrupted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Config, Any]:
    config, folder = VARIANTS[request.param], tmp_path_factory.mktemp("whole") / "run"
    return config, outcome(train(ring(), folder, config, device="cpu"))  # exact there


def test_the_same_seed_gives_the_same_run(
    uninterrupted: tuple[Config, Any], tmp_path: Path
) -> None:
    config, expected = uninterrupted
    assert outcome(train(ring(), tmp_path / "run", config)) == expected
    other = config.with_values(training={"seed": 1})
    assert outcome(train(ring(), tmp_path / "other", other))[0] != expected[0]


@pytest.mark.parametrize("stops", [[1], [4], [5], [3, 4, 1], [12]], ids=str)
def test_a_resumed_run_ends_where_the_uninterrupted_one_does(
    uninterrupted: tuple[Config, Any], stops: list[int], tmp_path: Path
) -> None:
    config, expected = uninterrupted
    left = expected[2]["steps"]
    for steps in stops:
        if steps := min(steps, left):
            stopped(tmp_path, config, steps)
            left -= steps
    folder = train(ring(), tmp_path, config, resume=True)
    assert outcome(folder) == expected
    assert not folder.checkpoint.exists()


@pytest.mark.slow  # on a busy machine threads wait for each other, a hundred times as long as alone
def test_two_threads_repeat_bit_for_bit(tmp_path: Path) -> None:
    """Large enough for gradients to be added up by several threads."""
    config = quick(
        {"signature": "P8x16 Q9x16"},
        steps=2,
        batch_size=300,
        negatives=0,
        validate_every=0,
        regulariser="norm",
        regulariser_weight=0.1,
    )
    spokes = [(f"e{i % 7}", f"r{i % 5}", f"e{i % 50}") for i in range(200)]
    graph = KnowledgeGraph.from_triples(spokes)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        runs = {outcome(train(graph, tmp_path / str(i), config))[0] for i in range(3)}
    finally:
        torch.set_num_threads(threads)
    assert len(runs) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler hides it by itself
def test_a_compiled_run_repeats_and_resumes(tmp_path: Path) -> None:
    if not can_compile():
        pytest.skip("torch.compile does not work here")
    config = quick(compile="on", validate_every=0)
    expected = outcome(train(ring(), tmp_path / "whole", config))
    assert expected[2]["environment"]["compiled"] is True
    assert outcome(train(ring(), tmp_path / "again", config)) == expected
    stopped(tmp_path / "run", config, 5)
    assert outcome(train(ring(), tmp_path / "run", config, resume=True)) == expected


def test_a_kill_between_checkpoints_loses_only_what_came_after(tmp_path: Path) -> None:
    """What is left of the log, the checkpoint being written and the model is done over."""
    config = quick()
    expected = outcome(train(ring(), tmp_path / "whole", config))
    out = tmp_path / "run"
    stopped(out, config, 6)
    with (out / "log.jsonl").open("a") as log:
        log.write('{"step": 8, "validation_mrr": 0.9}\n{"step": 10, "los')
    left_by_a_kill(out / "checkpoint.safetensors")
    (out / "model.safetensors").write_bytes(b"half")
    folder = train(ring(), out, config, resume=True)
    assert outcome(folder) == expected
    assert not list(out.glob("*.partial"))


def test_resume_without_a_checkpoint_starts_from_the_beginning(tmp_path: Path) -> None:
    config = quick()
    expected = outcome(train(ring(), tmp_path / "whole", config))
    nothing, started, cut_short = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    assert outcome(train(ring(), nothing, config, resume=True)) == expected
    stopped(started, config, 6)
    (started / "checkpoint.safetensors").unlink()
    assert outcome(train(ring(), started, config, resume=True)) == expected
    cut_short.mkdir()
    (cut_short / "vocabulary.json").write_text("{")
    left_by_a_kill(cut_short / "graph.safetensors")
    assert outcome(train(ring(), cut_short, config, resume=True)) == expected
    assert not list(cut_short.glob("*.partial"))


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    train(ring(), tmp_path, quick())
    left = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    (tmp_path / "checkpoint.safetensors").write_bytes(b"from a kill at the very end")

    def never() -> bool:
        raise AssertionError("a finished run took a step")

    train(ring(), tmp_path, quick(), resume=True, should_stop=never)
    assert left == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}


def test_an_existing_run_is_not_overwritten(tmp_path: Path) -> None:
    stopped(tmp_path, quick(), 3)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RunError, match="holds a run already; add --resume"):
        train(ring(), tmp_path, quick())
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", ["thesis.docx", "config.toml", ".tmpUKhjfr"])
def test_a_folder_of_something_else_is_not_touched(name: str, resume: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text("# mine")
    with pytest.raises(RunError, match="not empty and holds no run"):
        train(ring(), tmp_path, quick(), resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError, match="run: cannot be made a run folder"):
        train(ring(), tmp_path / "run", quick())


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    stopped(tmp_path, quick(), 3)
    learning, seed = "training.learning_rate is 0.02 there and 0.5 here", "training.seed is 0 there"
    with pytest.raises(ConfigError, match=rf"{learning}, {seed} and 1 here\)"):
        train(ring(), tmp_path, quick(learning_rate=0.5, seed=1), resume=True)


def test_no_settings_are_those_it_was_started_with(tmp_path: Path) -> None:
    expected = outcome(train(ring(), tmp_path / "whole", quick()))
    stopped(tmp_path / "run", quick(), 3)
    assert outcome(train(ring(), tmp_path / "run", resume=True)) == expected


def test_other_data_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path, quick(), 3)
    graph = KnowledgeGraph.from_triples([("a", "next", "b"), ("b", "next", "c")])
    with pytest.raises(RunError, match="started on other data"):
        train(graph, tmp_path, quick(), resume=True)


def test_the_same_facts_in_another_order_resume_the_same_run(tmp_path: Path) -> None:
    """Read again in another order, entities have other ids; the run keeps those it started with."""
    config = quick(validate_every=0)
    expected = outcome(train(ring(), tmp_path / "whole", config))
    graph = ring()

    def named(split: str) -> list[tuple[str, str, str]]:
        return [
            (graph.entities[h], graph.relations[r], graph.entities[t])
            for h, r, t in graph.split(split).tolist()
        ]

    ordered = KnowledgeGraph.from_triples(
        sorted(named("train")), sorted(named("valid")), sorted(named("test"))
    )
    assert ordered.digest == graph.digest
    assert not torch.equal(ordered.train, graph.train)
    out = tmp_path / "run"
    stopped(out, config, 5)
    folder = train(ordered, out, config, resume=True)
    assert outcome(folder) == expected
    assert folder.graph().entities.names == graph.entities.names


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    stopped(mine, quick(), 3)
    stopped(other, quick(seed=1), 3)
    (other / "checkpoint.safetensors").replace(mine / "checkpoint.safetensors")
    with pytest.raises(RunError, match=r"checkpoint\.safetensors: was written for other data"):
        train(ring(), mine, quick(), resume=True)


def test_going_on_elsewhere_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a run depends on every environment it passed through."""
    stopped(tmp_path, quick(), 3)
    stopped(tmp_path, quick(), 3)
    assert "resumed_in" not in RunFolder(tmp_path).about()
    monkeypatch.setattr("golde.training.loop.environment", lambda device: {"threads": 99})
    stopped(tmp_path, quick(), 2)
    train(ring(), tmp_path, quick(), resume=True)
    about = RunFolder(tmp_path).about()
    assert about["resumed_in"] == [{"threads": 99, "compiled": False}]
    assert about["environment"]["threads"] == torch.get_num_threads()
