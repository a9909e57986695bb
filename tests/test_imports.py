"""Imports point one way, extras stay optional, and a few things stay out of the library."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import golde

ROOT = Path(golde.__file__).parent

ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "words": set(),
    "threads": set(),
    "_version": set(),
    "written_settings": {"errors"},
    "config": {"errors", "written_settings"},
    "kernels": set(),
    "geometry": {"kernels", "errors"},
    "data": {"errors", "progress", "_version"},
    "evidence": {"data"},
    "models": {"geometry", "config", "evidence"},
    "evaluation": {"data"},  # a scoring callable, never a model
    "runs": {"config", "data", "models"},
    "training": {"models", "data", "evaluation", "runs"},
    "inference": {"runs", "evaluation"},
    "analysis": {"runs", "evaluation"},
    "distributed": {"training", "threads", "words"},
    "benchmark": {"training"},
    "tuning": {"training", "threads"},
    "interop": {"training"},
    "api": {"training", "inference"},
    "report": {"analysis", "benchmark", "inference", "threads", "words"},
    "service": {"analysis", "inference", "report"},  # the last for its comparison of runs
}
"""Who may import whom, beside what those may import themselves. ``cli`` and the package may import all."""

FREE = {"cli", "__init__", "__main__"}
CORE = {"numpy", "pydantic", "rich", "safetensors", "tomli_w", "torch", "typer"}
EXTRAS = (
    "pyarrow",
    "psycopg",
    "pyoxigraph",
    "matplotlib",
    "tensorboard",
    "triton",
    "pykeen",
    "torch_geometric",
    "optuna",
    "fastapi",
    "starlette",
    "uvicorn",
    "prometheus_client",
)
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def below(room: str) -> set[str]:
    """The rooms one may import from, directly or through others."""
    return {room}.union(*(below(other) for other in ARROWS[room]))


def modules() -> Iterator[tuple[Path, str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        yield path.relative_to(ROOT), room, ast.parse(path.read_text("utf-8"), str(path))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            # ``from golde import data`` names the room in the alias.
            names = [f"{module}.{a.name}" for a in node.names] if module == "golde" else [module]
            yield from ((node.lineno, name) for name in names)


def test_imports_point_one_way() -> None:
    wrong = []
    for path, room, tree in modules():
        assert room in ARROWS or room in FREE, f"{path}: give the new room {room!r} its arrows here"
        for line, name in imported(tree):
            package, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if package != "golde" or room in FREE or other == "__version__":
                continue
            if other not in below(room):
                wrong.append(f"{path}:{line}: {room} imports {other or 'golde'}")
    assert not wrong


def test_extras_are_imported_where_they_are_used() -> None:
    """At the top of a module only the standard library, core dependencies and ourselves."""
    wrong = []
    for path, _, tree in modules():
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for line, name in imported(statement):
                    top = name.partition(".")[0]
                    if top not in sys.stdlib_module_names | CORE | {"golde"}:
                        wrong.append(f"{path}:{line}: {top}")
    assert not wrong


def kept_from_windows(tree: ast.Module) -> set[int]:
    """Lines in the other branch of a module's ``if sys.platform == "win32"``."""
    return {
        line
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "sys.platform == 'win32'"
        for other in node.orelse
        for line in range(other.lineno, (other.end_lineno or other.lineno) + 1)
    }


def test_nothing_posix_only_no_pickle_and_no_print() -> None:
    wrong = []
    for path, room, tree in modules():
        elsewhere = kept_from_windows(tree)
        for line, name in imported(tree):
            top = name.partition(".")[0]
            if top == "pickle" or (top in POSIX_ONLY and line not in elsewhere):
                wrong.append(f"{path}:{line}: {name}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in {"torch.load", "torch.save"} or (called == "print" and room != "cli"):
                    wrong.append(f"{path}:{node.lineno}: {called}")
    assert not wrong


def test_every_module_imports_without_extras_and_the_package_without_torch() -> None:
    """``import golde`` stays quick; the rest needs the core dependencies only."""
    names = [
        "golde." + ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        for path, _, _ in modules()
        if path.parts != ("__init__.py",)
    ]
    script = f"""
import importlib, sys
for extra in {EXTRAS!r}:
    sys.modules[extra] = None  # importing it raises ImportError
import golde
assert "torch" not in sys.modules, "import golde loads torch"
for name in {names!r}:
    importlib.import_module(name)
for name in golde.__all__:
    getattr(golde, name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
