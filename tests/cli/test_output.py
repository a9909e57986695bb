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


@pytest.mark.parametrize(("value", "text"), [(2.345, "2.3"), (999.94, "999.9"), (1234.5, "1,234")])
def test_mean_ranks_have_digits_that_mean_something(value: float, text: str) -> None:
    assert figure("mr", value) == text
