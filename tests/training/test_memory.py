"""A model that cannot fit is refused before it is made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from golde.errors import ConfigError, RunError
from golde.models import GoldE
from golde.training import loop, memory, train
from tiny import quick, ring

CPU = torch.device("cpu")
EVERYTHING = {
    "signature": "E3x2 P4x3 Q4x2",
    "reflections": "alternating",
    "bias": True,
    "reciprocal": False,
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_bound_is_parameters_gradient_and_moments(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = quick(EVERYTHING, precision=precision)
    model = GoldE(config.model, 20, 2).to(getattr(torch, precision))
    needed = 4 * sum(p.nbytes for p in model.parameters())
    monkeypatch.setattr(memory, "memory_of", lambda device: needed)
    memory.refuse_oversize(config, 20, 2, CPU)
    monkeypatch.setattr(memory, "memory_of", lambda device: needed - 1)
    with pytest.raises(ConfigError, match="'E3x2 P4x3 Q4x2' needs at least"):
        memory.refuse_oversize(config, 20, 2, CPU)


def test_rows_alone_need_no_gradient_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    config = quick(EVERYTHING, optimiser="lazy-adam")
    model = GoldE(config.model, 20, 2)
    needed = 4 * sum(p.nbytes for p in model.parameters()) - model.entity.nbytes
    monkeypatch.setattr(memory, "memory_of", lambda device: needed)
    memory.refuse_oversize(config, 20, 2, CPU)
    monkeypatch.setattr(memory, "memory_of", lambda device: needed - 1)
    with pytest.raises(ConfigError, match="needs at least"):
        memory.refuse_oversize(config, 20, 2, CPU)


def test_a_step_gathers_rows_while_there_is_no_gradient_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A few facts and a vast space: the rows of a batch are more than the parameters."""
    config = quick(EVERYTHING)
    parameters = sum(p.nbytes for p in GoldE(config.model, 20, 2).parameters())
    row, cores = 4 * (6 + 12 + 6), 4 * (6 + 12 + 6 + 7)  # one number more for each of 7 components
    assert memory.least_memory(config, 20, 2, CPU, rows=1) == 4 * parameters
    assert memory.least_memory(config, 20, 2, CPU, rows=900) == (
        3 * parameters + 900 * (row + 2 * cores)
    )
    asked = []
    monkeypatch.setattr(loop, "refuse_oversize", lambda *_, rows: asked.append(rows))
    for negatives, taken in ((6, 6), (0, 20), (90, 20)):
        out = Path("/dev/null/none")  # what is refused there is refused after the memory
        with pytest.raises(RunError, match="cannot be made"):
            train(ring(), out, quick(batch_size=80, negatives=negatives), device="cpu")
        assert asked.pop() == 2 * 64 + taken  # 32 facts, asked both ways


def test_it_is_refused_with_both_sizes_and_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "memory_of", lambda device: 16_000_000_000)
    said = r"'E1x100000000' needs at least 80\.8 GB .* 20 entities .* there are 16\.0 GB"
    with pytest.raises(ConfigError, match=said):
        train(ring(), tmp_path / "run", quick({"signature": "E1x100000000"}), device="cpu")
    assert not (tmp_path / "run").exists()


def test_where_memory_is_not_known_the_numbers_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "memory_of", lambda device: None)
    memory.refuse_oversize(quick({"signature": "E2x500000"}), 20, 2, CPU)
    with pytest.raises(ConfigError, match="1,000,002 numbers; at most 1,000,000"):
        memory.refuse_oversize(quick({"signature": "E2x500001"}), 20, 2, CPU)


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="needs another source to compare")
def test_memory_is_what_the_system_says() -> None:
    line = next(
        line for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line
    )
    assert memory.memory_of(CPU) == pytest.approx(int(line.split()[1]) * 1024, rel=0.01)
