"""What is printed: tables in a narrow terminal, and names that a terminal would act on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golde.cli.evaluate import figure
from golde.cli.output import complain, note, say, say_json, say_points, say_table


def test_names_stay_beside_the_widest_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    mean, low, high = (figure("mr", value) for value in (12345.67, 11234.56, 13456.78))
    say_table(["", *["side"] * 3], [["AMRI", *[f"{mean} ({low}–{high})"] * 3]], "<>>>")
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].startswith("AMRI ")
    assert printed[2].count("12,346 (11,235–13,457)") == 3
    assert max(map(len, printed)) <= 80


def test_a_narrow_terminal_loses_no_figure_and_no_label(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [["MRR", "0.510 (0.311–0.736)", "0.506 (0.250–0.778)"], ["lives in", "1.000", "0.500"]]
    say_table(["", "both sides", "heads"], rows, "<>>")
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed if line and "─" not in line] == [
        ["both", "sides", "heads"],
        ["MRR", "0.510", "(0.311–0.736)", "0.506", "(0.250–0.778)"],
        ["lives", "in", "1.000", "0.500"],
    ]
    assert len(printed[2]) == len(printed[1]) == 8 + 2 + 19 + 2 + 19


def test_a_folded_name_goes_on_further_in_and_no_line_ends_in_spaces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    name = "x country of origin y\n  a fact that is long as well"
    say_table(["rule", "error", "word"], [[name, "0.25", "w"], ["short", "0.5", ""]], "<><")
    assert capsys.readouterr().out.splitlines() == [
        "rule               error  word",
        "─" * 30,
        "x country of        0.25  w",
        "  origin y",
        "  a fact that is",
        "    long as well",
        "short                0.5",
        "",
    ]


def test_a_long_word_is_folded_rather_than_that_figures_do_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    say_table(
        ["variant", "MRR", "MR"],
        [["a-variant-of-a-long-name", "0.5155", "1,234"]],
        "<>>",
        within_words=True,
    )
    assert capsys.readouterr().out.splitlines() == [
        "variant             MRR     MR",
        "─" * 30,
        "a-variant-of-a-  0.5155  1,234",
        "  long-name",
        "",
    ]


def test_a_long_word_stays_whole_where_it_is_data(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    say_table(["tail", "score"], [["/people/marriage/type_of_union", "0.5155"]], "<>")
    assert "/people/marriage/type_of_union  0.5155" in capsys.readouterr().out


@pytest.mark.parametrize(("value", "text"), [(2.345, "2.3"), (999.94, "999.9"), (1234.5, "1,234")])
def test_mean_ranks_have_digits_that_mean_something(value: float, text: str) -> None:
    assert figure("mr", value) == text


ACTING = "\x1b[31mred\x07 \u2028 \x9b2J \u202e \r"
SHOWN = r"\x1b[31mred\x07 \u2028 \x9b2J \u202e \r"


@pytest.mark.parametrize(
    "speak",
    [
        complain,
        note,
        say,
        lambda name: say_points([("name", name)]),
        lambda name: say_table(["name"], [[name]], "<"),
    ],
    ids=["complain", "note", "say", "say_points", "say_table"],
)
def test_what_would_act_on_a_terminal_is_shown_as_an_escape(
    speak: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    speak(ACTING)
    printed = "".join(capsys.readouterr())
    assert SHOWN in printed
    assert not [sign for sign in ACTING if not sign.isprintable() and sign in printed]
    speak("x" * 2000)
    assert "".join(capsys.readouterr()).count("x") == 299


def test_json_says_the_same_without_acting(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"name": ACTING, "long": "x" * 2000})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"name": ACTING, "long": "x" * 2000}
    assert "\x1b" not in printed
    assert "\x9b" not in printed


def test_a_base_that_runs_into_names_is_noted(
    golde: Callable[..., Any], run: Path, tmp_path: Path
) -> None:
    for base, noted in (("https://a.org/films", True), ("https://a.org/films/", False)):
        out = tmp_path / "links.nt"
        done = golde("complete", run, "--top", 2, "--out", out, "--base", base)
        assert done.exit_code == 0, done.stderr
        assert ("end it in / or #" in done.stderr) is noted


def test_adrift_entities_with_long_names_fit(
    golde: Callable[..., Any], run: Path, tmp_path: Path
) -> None:
    rows = [("e1", "next", "near"), *(("a" * 2000, "next", f"b{i}" + "c" * 90) for i in range(5))]
    news = tmp_path / "news.tsv"
    news.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    done = golde("extend", run, news, "--out", tmp_path / "more", "--steps", 0)
    assert done.exit_code == 0, done.stderr
    about = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, about)) <= 80
    assert "6 without a way to a known entity" in done.stdout


def test_odd_names_are_drawn_without_a_word(
    golde: Callable[..., Any], tmp_path: Path, small: tuple[str, ...]
) -> None:
    """Signs that the font lacks, a name longer than the picture is wide, and formulas that are none."""
    pytest.importorskip("matplotlib")
    names = ["隣接", "r" * 300, "costs $x_{$"]
    rows = [(f"e{i}", names[i % 3], f"e{(i + 1) % 30}") for i in range(60)]
    graph = tmp_path / "odd.tsv"
    graph.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    few = (*small[:2], "--set", "training.steps=2")
    for words in (
        ("train", graph, "--out", tmp_path / "run", *few),
        ("geometry", tmp_path / "run", "--plot", tmp_path / "pictures"),
        ("advise", graph, "--plot", tmp_path / "shapes.png"),
    ):
        done = golde(*words)  # a warning is an error here
        assert done.exit_code == 0, (done.stderr, done.exception)
