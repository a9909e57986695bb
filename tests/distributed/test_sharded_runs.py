"""A run of several processes ends as that of one, and goes on with another number of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from golde.config import Config
from golde.data.graph import SPLITS
from golde.distributed import streaming
from golde.distributed.graph import GraphShare
from golde.distributed.loop import train_sharded
from golde.distributed.reading import load_share
from golde.distributed.world import World
from golde.errors import GoldeError, RunError
from golde.evaluation.evaluate import figures_of, rank_triples
from golde.evaluation.protocol import Protocol
from golde.runs import RunFolder
from golde.runs.atomic import read_tensors, replacing, write_tensors
from golde.training import StoppedError, train
from golde.training.loop import DivergedError
from threads import together
from tiny import quick, ring

CONFIG = quick({"bias": True}, precision="float64", log_every=1, checkpoint_seconds=0)


def run(folder: Path, size: int, config: Config = CONFIG, **options: Any) -> RunFolder:
    return together(
        size,
        lambda world: train_sharded(
            GraphShare.of(ring(), world), folder, config, world, device="cpu", **options
        ),
    )[0]


def stopper(after: int) -> Callable[[], bool]:
    """True once it was asked so often."""
    left = [after]

    def stops() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stops


def log(folder: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.log.read_text().splitlines()]


def parameters(folder: RunFolder) -> dict[str, torch.Tensor]:
    return dict(folder.load_model().state_dict())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(tmp_path_factory.mktemp("runs") / "alone", 1)


@pytest.mark.parametrize("size", [2, 3])
def test_a_run_ends_as_that_of_one_process(size: int, alone: RunFolder, tmp_path: Path) -> None:
    found = run(tmp_path / "run", size)
    torch.testing.assert_close(parameters(found), parameters(alone), rtol=1e-9, atol=1e-9)
    assert found.about()["validation"] == alone.about()["validation"]
    assert found.metrics().keys() == alone.metrics().keys()
    files = {path.name for path in found.path.iterdir()}
    assert files == {path.name for path in alone.path.iterdir()}
    assert not any(name.startswith("checkpoint") for name in files)
    ranks = rank_triples(found.load_model().scorer(), ring(), ring().valid)
    figures = figures_of(ranks, ring(), Protocol.of(ring(), "valid", ring().valid)).as_dict()
    stored = found.metrics()["valid"]
    assert {key: stored[key] for key in figures} == figures
    assert ranks.realistic.reciprocal().mean() == pytest.approx(
        max(check["mrr"] for check in found.about()["validation"])
    )


def test_a_run_on_files_is_the_run_on_their_graph(alone: RunFolder, tmp_path: Path) -> None:
    """Read by three processes, none of which has the whole graph."""
    folder, names = tmp_path / "ring", (ring().entities, ring().relations, ring().entities)
    folder.mkdir()
    for split in SPLITS:
        rows = ring().split(split).tolist()
        named = (zip(names, row, strict=True) for row in rows)
        lines = ("\t".join(of[id] for of, id in row) for row in named)
        (folder / f"{split}.tsv").write_text("".join(f"{line}\n" for line in lines))

    def work(world: World) -> RunFolder:
        share = load_share(folder, world)
        return train_sharded(share, tmp_path / "run", CONFIG, world, device="cpu")

    found = together(3, work)[0]
    torch.testing.assert_close(parameters(found), parameters(alone), rtol=1e-9, atol=1e-9)
    assert found.about()["validation"] == alone.about()["validation"]
    assert found.about()["digest"] == ring().digest
    losses = [[line["loss"] for line in log(run)] for run in (found, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert len(losses[0]) == 12


@pytest.mark.parametrize(("before", "after"), [(4, 2), (1, 3), (3, 1)])
def test_a_run_goes_on_with_another_number_of_processes(
    before: int, after: int, alone: RunFolder, tmp_path: Path
) -> None:
    with pytest.raises(StoppedError):
        run(tmp_path / "run", before, should_stop=stopper(5 * before))
    kept = sorted(path.name for path in tmp_path.glob("run/checkpoint-*/*"))
    assert len(kept) == before + 1
    found = run(tmp_path / "run", after, resume=True)
    torch.testing.assert_close(parameters(found), parameters(alone), rtol=1e-9, atol=1e-9)
    steps = [entry["step"] for entry in found.about()["validation"]]
    assert steps == [4, 8, 12]


def test_until_the_index_is_written_the_checkpoint_before_counts(
    alone: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if all were killed between the files of a checkpoint and its index."""
    with pytest.raises(StoppedError):
        run(tmp_path / "run", 2, should_stop=stopper(8))
    [newest] = tmp_path.glob("run/checkpoint-*")
    torn = newest.with_name("checkpoint-7")
    torn.mkdir()
    (torn / "shared.safetensors").write_bytes(b"half")
    found = run(tmp_path / "run", 2, resume=True)
    torch.testing.assert_close(parameters(found), parameters(alone), rtol=1e-9, atol=1e-9)
    assert not torn.exists()


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(tmp_path / "run", 2, should_stop=stopper(8))
    [rows, *_] = tmp_path.glob("run/checkpoint-*/rows-*")
    rows.write_bytes(rows.read_bytes()[:100])
    with pytest.raises(
        RunError, match=r"rows-\d+-\d+\.safetensors: cannot be read.*start from the beginning"
    ):
        run(tmp_path / "run", 1, resume=True)


def test_tensors_that_do_not_fit_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(tmp_path / "run", 2, should_stop=stopper(8))
    [shared] = tmp_path.glob("run/checkpoint-*/shared.safetensors")
    tensors, _ = read_tensors(shared)
    tensors["model/groups.1.b"] = tensors["model/groups.1.b"][:1]
    write_tensors(shared, tensors)
    with pytest.raises(RunError, match=r"model/groups\.1\.b is \(1, .* not \(4, .*damaged"):
        run(tmp_path / "run", 2, resume=True)


def test_what_the_first_process_refuses_all_refuse(tmp_path: Path) -> None:
    """Nobody waits for it: a folder that holds a run, or something else."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("")

    def work(world: World) -> str:
        with pytest.raises(GoldeError) as caught:
            train_sharded(
                GraphShare.of(ring(), world), tmp_path / "mine", CONFIG, world, device="cpu"
            )
        return str(caught.value)

    first, *others = together(3, work)
    assert "the folder is not empty and holds no run" in first
    assert others == ["process 0 failed; what it says tells why"] * 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["graph.safetensors", "model.safetensors"])
def test_a_file_that_cannot_be_written_stops_all(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full, say: nobody waits for the process that writes."""

    @contextmanager
    def full(path: Path) -> Iterator[Path]:
        with replacing(path) as new:
            if path.name == name and os.path.exists("/dev/full"):
                new.symlink_to("/dev/full")
            elif path.name == name:
                raise OSError(28, "No space left on device")
            yield new

    def work(world: World) -> str:
        with pytest.raises(GoldeError) as caught:
            train_sharded(
                GraphShare.of(ring(), world), tmp_path / "run", CONFIG, world, device="cpu"
            )
        return str(caught.value)

    monkeypatch.setattr(streaming, "replacing", full)
    first, *others = together(3, work)
    assert f"{name}: cannot be written: No space left on device" in first
    assert others == ["process 0 failed; what it says tells why"] * 2


def test_one_process_and_several_do_not_go_on_from_each_other(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(tmp_path / "several", 2, should_stop=stopper(8))
    with pytest.raises(RunError, match="was started with --devices N"):
        train(ring(), tmp_path / "several", CONFIG, resume=True, device="cpu")
    with pytest.raises(StoppedError):
        train(ring(), tmp_path / "one", CONFIG, should_stop=stopper(5), device="cpu")
    with pytest.raises(RunError, match="was started without --devices"):
        run(tmp_path / "one", 1, resume=True)


def test_damage_of_one_stops_all(tmp_path: Path) -> None:
    """A parameter of the second process becomes infinite; all say so, and nothing is saved."""
    from golde.distributed import loop

    class Damaged(loop.ShardedUpdate):
        def settle(self) -> None:
            super().settle()
            if self.world.rank == 1:
                self.model.entity.data[0] = torch.inf

    def work(world: World) -> str:
        with pytest.raises(DivergedError) as caught:
            train_sharded(
                GraphShare.of(ring(), world), tmp_path / "run", config, world, device="cpu"
            )
        return str(caught.value)

    config = quick(validate_every=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "ShardedUpdate", Damaged)
        assert all("entity is no longer finite" in words for words in together(2, work))
    assert not (tmp_path / "run" / "model.safetensors").exists()
