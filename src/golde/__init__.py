"""GoldE: knowledge-graph completion in products of curved spaces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from golde._version import __version__

if TYPE_CHECKING:
    from golde.api import extend, load_run, train
    from golde.config import Config
    from golde.data.graph import KnowledgeGraph
    from golde.data.loading import load_graph
    from golde.errors import GoldeError
    from golde.geometry import Signature
    from golde.inference import Prediction, Query, Run

__all__ = [
    "Config",
    "GoldeError",
    "KnowledgeGraph",
    "Prediction",
    "Query",
    "Run",
    "Signature",
    "__version__",
    "extend",
    "load_graph",
    "load_run",
    "train",
]

_HOMES = {
    "Config": "golde.config",
    "GoldeError": "golde.errors",
    "KnowledgeGraph": "golde.data.graph",
    "Prediction": "golde.inference",
    "Query": "golde.inference",
    "Run": "golde.inference",
    "Signature": "golde.geometry",
    "extend": "golde.api",
    "load_graph": "golde.data.loading",
    "load_run": "golde.api",
    "train": "golde.api",
}
"""Where each public name lives; it is imported when first asked for, so ``import golde`` is quick."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'golde' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
