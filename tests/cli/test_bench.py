"""``golde bench`` at a size that takes seconds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from golde.benchmark import forms
from golde.benchmark.size import SWEEPS, WN18RR
from golde.benchmark.task import Task
from golde.cli import bench

Golde = Callable[..., Any]

TINY = (
    *("--device", "cpu", "--entities", 60, "--relations", 3, "--facts", 200),
    *("--signature", "P3x2 Q4x2", "--batch", 12, "--negatives", 12, "--repeats", 3),
)


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take longer than all the rest."""
    monkeypatch.setattr(forms, "can_compile", lambda: False)


def test_the_table_has_every_form_and_fits_80_columns(golde: Golde) -> None:
    result = golde("bench", *TINY, "--sweep", "entities")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for name in ("gathered", "plain", "blocked", "entities 15", "entities 240"):
        (row,) = (line for line in lines if line.startswith(f"{name} ") and " ms" in line)
        assert row.endswith("MiB")
    assert "plain compiled: torch.compile does not work here" in result.stdout
    assert "CUDA graph" not in result.stdout


def test_json_is_one_value_and_what_is_written(golde: Golde, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    result = golde("bench", *TINY, "--json", "--out", out)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert json.loads(out.read_text()) == found
    assert found["size"]["signature"] == "P3x2 Q4x2"
    assert found["settings"]["repeats"] == 3
    assert found["forms"]["blocked"]["pairs_per_second"] > 0


def test_a_form_that_is_wrong_has_no_time(golde: Golde, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_space(task: Task, *, capture: bool) -> forms.Shared:
        return forms.Shared(replace(task, settings=("model.norm=2",)), capture=capture)

    monkeypatch.setitem(forms.ON_CPU, "blocked", forms.form(other_space, forms.plain))
    result = golde("bench", *TINY)
    assert result.exit_code == 1
    assert "error: blocked has no time: " in result.stderr
    assert "differs from the plain form's by" in result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["blocked", "failed"] in rows
    assert "gathered" in result.stdout


MISTAKES = {
    "batch": (("--batch", 500), "--batch 500 is more than the 400 queries"),
    "facts": (("--facts", 6000), "--facts 6000"),
    "negatives": (("--negatives", 61), "--negatives 61 is more than the 60 entities; lower it"),
    "negatives of a sweep": (
        ("--sweep", "negatives", "--negatives", 20),
        "--sweep negatives goes to negatives 80: --negatives 80 is more than the 60 entities",
    ),
    "vast batch": (
        ("--entities", 10**7, "--facts", 10**7, "--batch", 10**7, "--negatives", 10**7),
        "lower --batch, --negatives or --signature, which takes 4,800,000.0 GB",
    ),
    "vast graph": (("--entities", 10**7, "--facts", 10**13), "lower --facts, which takes 3,000,"),
    "vast table": (("--entities", 10**12), "lower --signature, --entities or --relations, which"),
    "vast space": (("--signature", "E99999999999x99999999999"), "does not fit in memory"),
    "vast size of a sweep": (
        (
            *("--entities", 10**5, "--facts", 10**5, "--batch", 10**5, "--negatives", 25_000),
            *("--sweep", "entities", "--sweep", "negatives"),
        ),
        "--sweep negatives goes to negatives 100000: this needs at least",
    ),
    "space": (("--signature", "Z3"), "'Z'"),
    "nothing to vary": (("--negatives", 0, "--sweep", "negatives"), "--negatives"),
    "unknown sweep": (("--sweep", "facts"), "'facts'"),
    "no folder": (("--out", "none/bench.json"), "no folder none"),
    "no entities": (("--entities", 1), "--entities"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_before_anything_is_measured(
    golde: Golde, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.benchmark.memory.memory_of", lambda device: 400 * 10**9)
    monkeypatch.setattr(
        "golde.benchmark.compare.Comparison.measure", lambda *_: pytest.fail("measured")
    )
    arguments, named = MISTAKES[mistake]
    result = golde("bench", *TINY, *arguments)
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert result.stdout == ""


def test_many_facts_are_announced(golde: Golde, monkeypatch: pytest.MonkeyPatch) -> None:
    assert golde("bench", *TINY).stderr == ""
    monkeypatch.setattr("golde.benchmark.compare.MANY_FACTS", 200)
    assert "drawing and sorting 200 random facts" in golde("bench", *TINY).stderr


def test_sweeps_are_those_there_are() -> None:
    assert [sweep.value for sweep in bench.Sweep] == list(SWEEPS)


def test_help_has_examples_that_are_understood(golde: Golde) -> None:
    shown = golde("bench", "--help").stdout
    assert "Example: golde bench\n" in shown
    examples = [line for line in shown.splitlines() if line.startswith("    golde bench --")]
    assert len(examples) == 2


def test_figures_of_a_gpu_fit_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"ms": 1249.2123, "quartiles_ms": [1249.1, 1249.9], "pairs_per_second": 1_293_482_349}
    figures |= {"memory_beyond_state_mb": 83_450, "captured": True}
    bench._print(
        {
            "size": WN18RR._asdict(),
            "given": ["training.optimiser=lazy-adam"],
            "machine": {"device": "cuda", "gpu": "NVIDIA H200", "cpu": "", "threads": 16},
            "versions": {"python": "3.12.3", "golde": "0.1.0", "torch": "2.11.0", "triton": "3.6"},
            "commit": "0" * 40,
            "settings": {"repeats": 60},
            "forms": dict.fromkeys(forms.ON_GPU, figures) | {"broken": {"failed": "it is"}},
            "sizes": {"dimension P40 Q49": figures},
        }
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("yes" in line.split() for line in lines) == 5


def test_a_folder_is_refused_before_anything_is_measured(
    golde: Golde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.benchmark.compare.bench", lambda *_, **__: pytest.fail("measured"))
    shown = golde("bench", *TINY, "--out", str(tmp_path))
    assert shown.exit_code == 2
    assert "it is a folder" in shown.stderr
