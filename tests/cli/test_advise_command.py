"""``golde advise``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golde.config import Config
from golde.geometry import Signature

Golde = Callable[..., Any]


def test_it_prints_a_signature_with_reasons_in_80_columns(
    golde: Golde, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = golde("advise", "world")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if line.startswith("signature")).endswith(
        "128 numbers an entity)"
    )
    assert any("located in" in line and line.rstrip().endswith("hierarchy") for line in lines)
    assert any(line.startswith("borders") and line.rstrip().endswith("symmetric") for line in lines)
    assert lines[-1].startswith("next  golde train world --set 'model.signature=")


def test_the_page_shows_what_it_prints_and_draws(golde: Golde, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    docs = Path(__file__).parents[2] / "docs"
    result = golde("advise", "world", "--plot", tmp_path / "world.png")
    shown = (docs / "advise.md").read_text("utf-8")
    for line in result.stdout.splitlines()[:2]:
        assert f"{line}\n" in shown
    now, committed = (imread(p) for p in (tmp_path / "world.png", docs / "assets/advise_world.png"))
    assert now.shape == committed.shape
    again = "run: golde advise world --plot docs/assets/advise_world.png"
    assert abs(now - committed).mean() < 3e-4, again


def test_it_says_where_its_proposal_is_what_training_takes_unasked(
    golde: Golde, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from golde.cli import advise

    found = json.loads(golde("advise", facts, "--json").stdout)
    unasked = "the default: training takes it unasked"
    assert (unasked in golde("advise", facts).stdout) == (found["signature"] == found["default"])
    for signature, said in ((found["signature"], True), ("E2x64", False)):
        monkeypatch.setattr(advise, "_default", lambda graph, s=signature: Signature.parse(s))
        assert (unasked in golde("advise", facts).stdout) is said


def test_its_configuration_trains(golde: Golde, facts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    config, picture = tmp_path / "ring.toml", tmp_path / "ring.png"
    result = golde("advise", facts, "--numbers", 16, "--out", config, "--plot", picture, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert Signature.parse(found["signature"]).numbers == 16
    assert {one["name"] for one in found["relations"]} == {"next", "previous", "opposite", "is"}
    assert found["reasons"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert Config.load(config).model.signature == found["signature"]
    trained = golde(
        "train", "--config", config, "--out", tmp_path / "run", "--set", "training.steps=3"
    )
    assert trained.exit_code == 0, trained.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("none.tsv",), "none.tsv"),
        (("wn18r",), "wn18rr"),
        (("<facts>", "--numbers", "0"), "at least 1"),
        (("<facts>", "--out", "new.json"), ".toml"),
        (("<facts>", "--plot", "new.pdf"), ".png or .svg"),
        (("<facts>", "--plot", "none/new.png"), "no folder none"),
        (("<facts>", "--seed", "-1"), "--seed"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    golde: Golde,
    facts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    named: str,
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    result = golde("advise", *(str(facts) if word == "<facts>" else word for word in arguments))
    assert result.exit_code == 2, result.output
    assert named in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_named_before_the_graph_is_read(
    golde: Golde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = golde("advise", tmp_path / "none.tsv", "--plot", tmp_path / "new.png")
    assert result.exit_code == 2
    assert "pip install 'golde[plots]'" in result.stderr


def test_the_next_command_reads_the_graph_as_this_one_did(golde: Golde, tmp_path: Path) -> None:
    table = tmp_path / "facts.csv"
    rows = [f"{i},e{i},note,next,e{i + 1}\n" for i in range(40)]
    table.write_text("".join(["id,from,note,kind,to\n", *rows]), encoding="utf-8")
    advised = golde("advise", table, "--columns", "from,kind,to", "--valid", "5")
    assert advised.exit_code == 0, advised.stderr
    words = shlex.split(advised.stdout.splitlines()[-1])[2:]
    out = str(tmp_path / "run")
    quick = ("--set", "training.steps=1")
    trained = golde(*[out if word == "RUN" else word for word in words], *quick)
    assert trained.exit_code == 0, trained.stderr
    assert Config.load(tmp_path / "run" / "config.toml").model.signature
