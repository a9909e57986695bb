"""Run the commands of docs/guide.md and put what they print and draw into the page.

    python scripts/guide.py

Every line ``$ …`` of a console block is carried out, in order, in a fresh folder with a copy of
docs/examples; what it prints on stdout comes below it. ``<!-- shown: 12 lines -->`` before a block keeps the
first lines of each output, the rest becomes ``…``. A picture ``assets/guide/NAME.png`` of the page is the
NAME.png that a command drew.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parents[1] / "docs"
PAGE, EXAMPLES, PICTURES = DOCS / "guide.md", DOCS / "examples", DOCS / "assets" / "guide"
BLOCK = re.compile(
    r"(?P<open>(?:<!-- shown: (?P<most>\d+) lines -->\n)?^```console[^\n]*\n)(?P<body>.*?)^```$",
    re.M | re.S,
)
PROGRAMS = {"golde": [sys.executable, "-m", "golde"], "python": [sys.executable]}


def rendered(page: str, folder: Path) -> str:
    """The page with the outputs of its commands, carried out in a folder."""

    def renewed(block: re.Match[str]) -> str:
        most = int(block["most"] or 1000)
        lines = []
        for line in block["body"].splitlines():
            if line.startswith("$ "):
                output = carried_out(line.removeprefix("$ "), folder)
                lines += [line, *output[:most], *(["…"] if len(output) > most else [])]
        return block["open"] + "\n".join(lines) + "\n```"

    return BLOCK.sub(renewed, page)


def carried_out(command: str, folder: Path) -> list[str]:
    """What a command prints on stdout, in 80 columns and without an empty end."""
    program, *arguments = shlex.split(command)
    # One thread, so that the figures are the same on every machine of a kind.
    settings = {"COLUMNS": "80", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [*PROGRAMS.get(program, [program]), *arguments],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise SystemExit(f"$ {command}\n{done.stderr}")
    return done.stdout.rstrip().splitlines()


def renew(page: Path, pictures: Path) -> None:
    """Run the guide; write the page and its pictures."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
        text = rendered(PAGE.read_text("utf-8"), folder)
        pictures.mkdir(parents=True, exist_ok=True)
        for picture in sorted(set(re.findall(r"\(assets/guide/([\w.]+)\)", text))):
            (drawn,) = folder.rglob(picture)
            shutil.copyfile(drawn, pictures / picture)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    renew(PAGE, PICTURES)
