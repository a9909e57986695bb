"""Tables in a narrow terminal."""

from __future__ import annotations

import pytest

from golde.cli.evaluate import figure
from golde.cli.output import say_table


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


@pytest.mark.parametrize(("value", "text"), [(2.345, "2.3"), (999.94, "999.9"), (1234.5, "1,234")])
def test_mean_ranks_have_digits_that_mean_something(value: float, text: str) -> None:
    assert figure("mr", value) == text
