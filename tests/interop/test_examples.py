"""The examples of docs/ecosystem.md run, with the real packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ecosystem.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the packages' own
@pytest.mark.parametrize(
    ("title", "package"), [("PyKEEN", "pykeen"), ("PyTorch Geometric", "torch_geometric")]
)
def test_the_example_runs(title: str, package: str) -> None:
    pytest.importorskip(package)
    found = re.search(rf'^```py title="{title}"\n(.*?)^```$', PAGE.read_text("utf-8"), re.M | re.S)
    assert found
    exec(compile(found[1], title, "exec"), {})
