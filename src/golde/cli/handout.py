"""``golde report RUN --html FILE``: what the page shows, as one file to send to somebody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from golde.cli import options
from golde.cli.output import bar, note, say_json, say_points
from golde.errors import GoldeError


def write_handout(runs: Sequence[Path], file: Path, device: options.Device, json: bool) -> None:
    """Write the file, and say what it leaves out."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise GoldeError(f"{file}: a page is written as .html; end the name so")
    if not file.parent.is_dir():
        raise GoldeError(f"{file}: there is no folder {file.parent}; make it first")
    import golde
    from golde.runs.atomic import refuse_what_is_no_file, write_text
    from golde.service.handout import handout
    from golde.service.settings import named_folders
    from golde.service.shelf import Shelf

    refuse_what_is_no_file(file)
    shelf = Shelf(named_folders(runs), lambda path: golde.load_run(path, device=device.value))
    for name in shelf.names:
        for message in shelf[name].run.notes:
            note(f"note: {message}")
    with bar("collecting") as progress:
        page, left_out = handout(shelf, progress)
    write_text(file, page)
    size = file.stat().st_size
    if json:
        say_json({"file": str(file), "bytes": size, "left_out": left_out})
        return
    say_points(
        [
            ("written", f"{file} ({size / 1e6:.1f} MB)"),
            *((f"of {name}", "\n".join(sentences)) for name, sentences in left_out.items()),
        ]
    )
