"""What the documentation shows is true: examples run, commands parse, names and links exist."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golde.data.loading import load_graph
from golde.data.world import load_world
from golde.report.pages import rendered
from golde.report.paper import PaperTables
from golde.report.plots import write_plots
from golde.report.scaling_plot import write_scaling_plot
from golde.report.step_plots import write_step_plots

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]

pages = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced code blocks of a page in some languages."""
    found = re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return [code for language, code in found if language in languages]


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    """As they stand, but for the number of steps, in a folder with a ``facts.tsv``."""
    code = "\n".join(blocks(page, "python"))
    code, shortened = re.subn(r"training\.steps=\d+", "training.steps=3", code)
    assert shortened or "golde.train(" not in code
    graph = load_world()
    rows = [
        (graph.entities[h], graph.relations[r], graph.entities[t])
        for h, r, t in graph.train[:500].tolist()
    ]
    (tmp_path / "facts.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_the_example_of_the_readme_is_ten_lines_and_prints_what_it_found() -> None:
    (code,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in code.splitlines() if line]) <= 10
    for call in ("load_graph", "train", ".evaluate(", ".predict(", ".complete("):
        assert call in code


def commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every ``golde …`` line shown."""
    for code in blocks(page, "bash", "console"):
        for line in code.splitlines():
            command = line.removeprefix("$ ")
            if command.startswith(
                "golde "
            ):  # anything else is output, in which quotes need not close
                yield shlex.split(command, comments=True)[1:]


def test_the_facts_of_the_quick_start_are_enough_for_its_commands(tmp_path: Path) -> None:
    page = DOCS / "quickstart.md"
    (facts,) = blocks(page, "text")
    (tmp_path / "facts.tsv").write_text(facts, "utf-8")
    graph = load_graph(tmp_path / "facts.tsv")
    assert len(graph.valid)
    assert len(graph.test)
    assert graph.notes == ()
    names = {"--head": graph.entities, "--relation": graph.relations, "--tail": graph.entities}
    for words in commands(page):
        for option, value in pairwise(words):
            if option in names:
                assert value in names[option].names


def test_commands_are_understood() -> None:
    """Every command shown exists and takes the options shown; none is carried out."""
    from typer.main import get_command

    from golde.cli.main import app

    shown = [words for page in PAGES for words in commands(page)]
    assert {words[0] for words in shown} >= {"train", "evaluate", "predict", "complete", "data"}
    for words in shown:
        command: Any = get_command(app)
        while hasattr(command, "commands"):
            name, *words = words
            command = command.commands[name]
        command.make_context(name, words)


def test_configuration_reference_is_up_to_date() -> None:
    reference = runpy.run_path(str(ROOT / "scripts" / "config_reference.py"))
    page = (DOCS / "configuration.md").read_text("utf-8")
    assert reference["rendered"](page) == page, "run: python scripts/config_reference.py"


def test_results_are_those_of_the_result_files() -> None:
    for path, text in rendered(ROOT, ROOT / "results").items():
        assert path.read_text("utf-8") == text, "run: golde report --write"


def test_figure_is_the_one_the_code_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(ROOT / "scripts" / "draw_figure2.py"))
    script["main"](tmp_path / "figure2.png")
    assert difference(tmp_path, "figure2.png") < 3e-4, "run: python scripts/draw_figure2.py"


def test_plots_are_those_of_the_result_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = write_plots(PaperTables(ROOT / "results", ROOT / "configs"), tmp_path)
    drawn += write_step_plots(ROOT / "results", tmp_path)
    drawn += write_scaling_plot(ROOT / "results", tmp_path)
    assert {"gpu_step.png", "gpu_growth.png"} <= {path.name for path in drawn}
    for path in drawn:
        assert (DOCS / "assets" / path.name).is_file()
        if path.suffix == ".png":
            assert difference(tmp_path, path.name) < 3e-4, "run: golde report --write"


def difference(drawn: Path, name: str) -> float:
    """Between a picture as it is drawn now and as it was committed, on average."""
    from matplotlib.image import imread

    now, committed = imread(drawn / name), imread(DOCS / "assets" / name)
    return float(np.abs(now - committed).mean()) if now.shape == committed.shape else 1.0


def test_maths_page_names_functions_and_tests_that_exist() -> None:
    rows = [line for line in (DOCS / "maths.md").read_text("utf-8").splitlines() if "|" in line]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    sources = "".join(path.read_text("utf-8") for path in ROOT.glob("tests/**/test_*.py"))
    missing = [
        name
        for name in names
        if not (f"def {name}(" in sources if name.startswith("test_") else exists(name))
    ]
    assert len(names) > 40
    assert not missing


def exists(name: str) -> bool:
    """Whether a dotted name, from ``golde.geometry`` on or in full, is there."""
    full = name if name.startswith("golde.") else f"golde.geometry.{name}"
    parts = full.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute, None)
        return found is not None
    return False


@pages
def test_relative_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    for target in targets:
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            assert (page.parent / path).exists() if path else anchor, target


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f": {page.name}\n" not in menu] == []
