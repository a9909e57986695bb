"""Under load nothing fails and memory does not grow; figures are for ``benchmarks/serve_load.py`` to take."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc"),
]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return __import__("serve_load")


def test_a_mixture_of_requests_is_answered_in_flat_memory(
    benchmark: ModuleType, tmp_path: Path
) -> None:
    graph = benchmark.write_run(tmp_path / "small", *benchmark.SIZES["small"])
    with benchmark.serving([tmp_path / "small"], tmp_path / "log") as port:
        found = asyncio.run(benchmark.soak(port, benchmark.questions(graph), 20))
    assert (found["busy"], found["errors"]) == (0, 0)
    assert found["requests"] > 200
    memory = found["memory_mb"]
    assert memory["last_fifth"] < 1.1 * memory["first_fifth"] + 20
