"""The pages that figures are written into: README.md, docs/results.md and docs/paper.md.

Nothing on them is typed by hand: what there is in ``results/`` is rendered, and nothing else.
"""

from __future__ import annotations

import re
from pathlib import Path

from golde.errors import GoldeError
from golde.report.benchmarks import IN_README, SECTIONS, section
from golde.report.earlier import earlier_section
from golde.report.large_tables import write_large_tables_plot
from golde.report.paper import PaperTables
from golde.report.plots import write_plots
from golde.report.scaling_plot import write_scaling_plot
from golde.report.step_plots import write_step_plots
from golde.report.tables import reproduced_section
from golde.report.variations import joined_share, variation_sections
from golde.runs.atomic import write_text

OPEN, CLOSE = "<!-- results -->", "<!-- /results -->"

RESULTS = """# Results

Every figure here was written by a command, `golde reproduce` or one of `benchmarks/`, into `results/`, and
from there into this page by `golde report --write`. [The paper beside ours](paper.md) has the paper's
tables; [Reproduce](reproduce.md) says how all of this is made again.

"""
PAPER = """# The paper beside ours

The tables and figures of the paper with ours beside them, written by `golde report --write`: published
figures from `src/golde/report/published.toml`, ours from `results/`. What was not run says so.
[Reproduce](reproduce.md) has the commands.

"""
FIGURES = {
    "Figure 3,": "![MRR by dimension](assets/figure3.png)\n\nAs [SVG](assets/figure3.svg).",
    "Figure 4:": "![MRR by numbers an entity](assets/figure4.png)\n\nAs [SVG](assets/figure4.svg).",
}


def between(text: str, content: str, path: Path) -> str:
    """A page with the part between its two marks written anew."""
    before, opening, rest = text.partition(OPEN)
    _, closing, after = rest.partition(CLOSE)
    if not opening or not closing:
        raise GoldeError(f"{path}: has no {OPEN} … {CLOSE}; put both where results belong")
    return f"{before}{OPEN}\n{content}\n{CLOSE}{after}"


def rendered(root: Path, results: Path) -> dict[Path, str]:
    """Every page of a checkout as it should be."""
    readme = root / "README.md"
    if not readme.is_file() or not (root / "docs").is_dir():
        raise GoldeError(
            f"{root}: has no README.md and docs/ to write into; --results must name the folder of a checkout"
        )
    beside_paper = PaperTables(results, root / "configs")
    reproduced = reproduced_section(results, [*joined_share(results), beside_paper.behind()])
    benchmarks = {name: section(results, name) for name in SECTIONS}
    short = [reproduced, *(benchmarks[name] for name in IN_README)]
    content = "\n\n".join(part.replace("## ", "### ", 1) for part in short if part)
    content = re.sub(r"\]\((\w+\.md)", r"](docs/\1", content)
    whole = "\n\n".join(
        part
        for part in (
            reproduced,
            earlier_section(results),
            *variation_sections(results),
            *benchmarks.values(),
        )
        if part
    )
    return {
        readme: between(readme.read_text(encoding="utf-8"), content, readme),
        root / "docs" / "results.md": f"{RESULTS}{whole}\n",
        root / "docs" / "paper.md": PAPER + _paper(beside_paper) + "\n",
    }


def _paper(evidence: PaperTables) -> str:
    """Each table, and each figure before the first of its tables."""
    parts, pictures = [], dict(FIGURES)
    for table in evidence.tables():
        start = next((start for start in pictures if table.title.startswith(start)), None)
        heading, _, rest = table.markdown().replace("### ", "## ", 1).partition("\n\n")
        picture = [pictures.pop(start)] if start else []
        parts.append("\n\n".join([heading, *picture, rest]))
    return "\n\n".join(parts)


def write_pages(root: Path, results: Path) -> list[Path]:
    """Write every page and picture of a checkout; the paths that were written."""
    pages = rendered(root, results)
    assets = root / "docs" / "assets"
    pictures = write_plots(PaperTables(results, root / "configs"), assets)
    pictures += write_step_plots(results, assets)
    pictures += write_large_tables_plot(results, assets)
    pictures += write_scaling_plot(results, assets)
    for path, text in pages.items():
        write_text(path, text)
    return [*pages, *pictures]
