"""Large tables measured at tiny sizes: what fits is timed, what was measured is kept, and all is rendered."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from golde.report.large_tables import large_tables, write_large_tables_plot

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CPU = torch.device("cpu")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark with few and small steps, in this process."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module: Any = __import__("large_tables")
    small = {"BATCH": 8, "NEGATIVES": 4, "WARM_UP": 1, "STEPS": 2, "REPEATS": 2, "RANKED": 3}
    for name, value in small.items():
        monkeypatch.setattr(module, name, value)
    yield module
    for name in ("common", "large_tables"):
        sys.modules.pop(name, None)


def test_both_kinds_of_table_make_the_same_steps(script: Any) -> None:
    device, host = (
        script.measure(script.Case(table, 50, 40, None), CPU) for table in ("device", "host")
    )
    assert host["loss"] == pytest.approx(device["loss"], rel=1e-5)
    assert host["triples_per_second"]["median"] > 0
    assert len(host["step_ms"]["each"]) == 2


def test_what_does_not_fit_is_told(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(script, "build", full)
    found = script.measure(script.Case("device", 50, 40, None), CPU)
    assert found == {"failed": "out of device memory"}


def test_a_run_goes_on_where_it_was_and_is_rendered(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, asked = tmp_path / "large_tables.json", []

    def in_child(case: Any, device: str) -> dict[str, Any]:
        asked.append(case)
        if case.table == "device" and case.cap_gib is not None and case.entities > 80:
            return {"failed": "out of device memory"}
        if len(asked) in (1, 2):
            found: dict[str, Any] = script.measure(case, torch.device(device))
            return found
        each = {"median": 2.0, "min": 1.0, "max": 3.0, "each": [2.0]}
        times = dict.fromkeys(("table_s", "settle_s", "rank_s", "loss"), 1.0)
        return {"step_ms": each, "triples_per_second": each, **times, "device_gib": 0.5}

    monkeypatch.setattr(script, "in_child", in_child)
    words = ["large_tables.py", "--out", str(out), "--device", "cpu", "--scale", "1e-6"]
    monkeypatch.setattr(sys, "argv", [*words, "--minutes", "0"])
    script.main()
    assert not asked
    monkeypatch.setattr(sys, "argv", words)
    script.main()
    cases = list(dict.fromkeys(script.cases(1e-6)))
    assert asked == cases
    first = out.read_text()
    script.main()
    assert asked == cases
    assert out.read_text() == first

    text = large_tables(json.loads(first))
    assert "| on the device | 100 | 10 | does not fit in 16 GiB |" in text
    assert "600 on the device, 500 in host memory with 16 GiB of GPU memory" in text
    assert "in host memory for ×50 the entities" in text
    assert "in host memory for ×15 the facts" in text
    (picture,) = write_large_tables_plot(tmp_path, tmp_path / "assets")
    assert picture.stat().st_size > 1000
