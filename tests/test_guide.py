"""The guide: its collection, its page and its notebook are what the committed scripts make of them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDE = runpy.run_path(str(ROOT / "scripts" / "guide.py"))


def test_the_collection_is_the_one_its_script_makes(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "build_films.py"))
    script["write"](tmp_path)
    for path in tmp_path.iterdir():
        committed = DOCS / "examples" / path.name
        assert committed.read_bytes() == path.read_bytes(), "run: python scripts/build_films.py"


def test_every_gap_follows_from_what_is_told() -> None:
    """So that a link which is not found is a mistake of the model, not of the collection."""
    told, gaps = runpy.run_path(str(ROOT / "scripts" / "build_films.py"))["collection"]()
    known = {(head, relation): tail for head, relation, tail in told}
    assert len(gaps) > 100
    assert not set(gaps) & set(told)
    for film, relation, answer in gaps:
        if relation == "follows":
            assert (answer, "followed by", film) in told
        else:
            country = known[known[film, "produced by"], "based in"]
            assert answer in (country, known[country, "official language"])


def test_outputs_are_put_below_their_commands(tmp_path: Path) -> None:
    page = (
        "before\n\n<!-- shown: 2 lines -->\n```console\n$ python -c 'print(1, 2, 3, sep=chr(10))'\nold\n"
        "```\n\n```console\n$ python -c 'print(4)'\n$ python -c 'print(5)'\n```\n\n```bash\n$ no\n```\n"
    )
    shown = GUIDE["rendered"](page, tmp_path)
    assert shown == page.replace("sep=chr(10))'\nold", "sep=chr(10))'\n1\n2\n…").replace(
        "'print(4)'", "'print(4)'\n4"
    ).replace("'print(5)'", "'print(5)'\n5")
    with pytest.raises(SystemExit, match="no such thing"):
        GUIDE["rendered"]("```console\n$ python -c 'exit(\"no such thing\")'\n```", tmp_path)


@pytest.mark.slow
def test_the_guide_can_be_carried_out(tmp_path: Path) -> None:
    page = tmp_path / "guide.md"
    GUIDE["renew"](page, tmp_path / "pictures")
    then, now = ((p.read_text("utf-8")) for p in (DOCS / "guide.md", page))
    commands = re.findall(r"^\$ .*$", then, re.M)
    assert commands == re.findall(r"^\$ .*$", now, re.M)
    assert len(commands) > 10
    pictures = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert pictures == {path.name for path in (DOCS / "assets" / "guide").iterdir()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the packages' own
def test_the_notebook_runs() -> None:
    import nbformat
    from nbclient import NotebookClient

    path = DOCS / "guide.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}}
    ).execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    right, asked = map(int, re.search(r"(\d+) of (\d+) gaps", printed).groups())  # type: ignore[union-attr]
    assert right > 0.8 * asked
