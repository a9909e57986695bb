"""The demonstration, with a model too small to be any good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from golde import Prediction, Run
from golde.cli import demo
from golde.data.world import QUESTIONS

Golde = Callable[..., Any]


def test_the_demo_tells_its_whole_story(golde: Golde, tmp_path: Path) -> None:
    taken = tmp_path / "world"
    taken.mkdir()
    small = ("--set", "model.signature=P4x2 Q5x2", "--set", "training.steps=20")
    result = golde("demo", "--out", taken, *small)
    assert result.exit_code == 0, result.stderr
    for part in ("this model", "popularity", "rules", "symmetry", "hierarchy", "Latvia", "Chad"):
        assert part in result.stdout
    assert not any(taken.iterdir())
    picture = tmp_path / "world-2" / "space.png"
    assert str(picture) in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_answers_are_marked_by_where_they_are_known_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = {"Ecuador": "train", "Chile": "test", "Brazil": "valid", "Spain": None}
    answers = [Prediction("Peru", "borders", tail, 0.0, split) for tail, split in known.items()]
    demo._answer(cast(Run, SimpleNamespace(predict=lambda *a, **k: answers)), QUESTIONS[1])
    assert "Ecuador =, Chile *, Brazil *, Spain\n" in capsys.readouterr().out
