"""The command line: ``golde COMMAND …``.

Commands live in the modules beside this one. Nothing here or at the top of those modules imports
torch, pydantic or the library: ``golde --help`` has to answer at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from golde._version import __version__
from golde.cli import (
    advise,
    ask,
    bench,
    calibrate,
    compare,
    complete,
    data,
    demo,
    evaluate,
    evidence,
    explain,
    extend,
    geometry,
    report,
    runs,
    serve,
    train,
    tune,
)
from golde.cli.allocator import keep_freed_memory
from golde.cli.output import complain
from golde.errors import GoldeError

EXIT_MISTAKE, EXIT_INTERRUPTED = 2, 130


class _Commands(TyperGroup):
    """Turns what a command raises into an exit code; what is nobody's mistake stays a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except GoldeError as error:
            complain(str(error))
            raise typer.Exit(EXIT_MISTAKE) from None
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:  # the reader has gone (`golde … | head`)
            _discard_output()
            raise typer.Exit(1) from None
        except OSError as error:
            if error.errno is None:  # not the system's
                raise
            if error.filename is None:
                complain(f"{error.strerror}; what was to be written is not, or not in full")
                _discard_output()
            else:
                complain(f"{error.filename}: {error.strerror}; check the path and its rights")
            raise typer.Exit(EXIT_MISTAKE) from None


def _discard_output() -> None:
    """What is still buffered has nowhere to go, and must not be tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="golde",
    cls=_Commands,
    help="Knowledge-graph completion in products of curved spaces.",
    epilog="Start with: golde demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"golde {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


for _module in (
    demo,
    advise,
    train,
    tune,
    evaluate,
    evidence,
    calibrate,
    compare,
    ask,
    complete,
    explain,
    geometry,
    extend,
    runs,
    serve,
    data,
    bench,
    report,
):
    _module.register(app)


def main() -> None:
    """Run the command line."""
    # Before torch is imported: threads that wait spin for some ten microseconds, then sleep. Spinning
    # on takes the cores from others that work on a busy machine (seen: thirty times slower), sleeping at
    # once costs more than most operations (three times slower on a quiet one).
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    keep_freed_memory()
    # A stream that was closed before the start (`>&-`) is None.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a character shows "?" for it
            stream.reconfigure(errors="replace")
    app()
