"""Writes the tables of docs/configuration.md from the schema: ``python scripts/config_reference.py``."""

from __future__ import annotations

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import BaseMetadata, Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from golde.config import Config

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
OPEN, CLOSE = "<!-- settings -->", "<!-- /settings -->"

_TYPES = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
_BOUNDS: dict[type[BaseMetadata], tuple[str, str]] = {
    Ge: ("ge", "≥"),
    Gt: ("gt", ">"),
    Le: ("le", "≤"),
    Lt: ("lt", "<"),
}


def rendered(page: str) -> str:
    """The page with the part between the two marks written anew."""
    before, _, rest = page.partition(OPEN)
    _, _, after = rest.partition(CLOSE)
    sections = [
        _section(name, field.annotation)
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    ]
    return "\n".join([before + OPEN, *sections, CLOSE + after])


def _section(name: str, model: type[BaseModel]) -> str:
    lines = [f"## `[{name}]`", "", (model.__doc__ or "").strip(), ""]
    lines += ["| Key | Value | Default | Meaning |", "|---|---|---|---|"]
    for key, field in model.model_fields.items():
        cells = [f"`{key}`", _value(field), _default(field), field.description or ""]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _value(field: FieldInfo) -> str:
    """What may be written: a choice, or a type with its bounds."""
    return ", ".join([_type(field.annotation), *_bounds(field.metadata)])


def _type(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in get_args(annotation))
    if get_origin(annotation) is dict:
        of = get_args(annotation)[1]
        inner, *metadata = get_args(of) or (of,)
        bounds = _bounds([one for info in metadata for one in info.metadata])
        return ", ".join(["table of " + _type(inner) + "s", *bounds])
    return _TYPES[annotation]


def _bounds(metadata: list[Any]) -> list[str]:
    found = []
    for rule in metadata:
        for kind, (attribute, sign) in _BOUNDS.items():
            if isinstance(rule, kind):
                found.append(f"{sign} {getattr(rule, attribute)}")
    return found


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    return "unset" if default is None else f"`{json.dumps(default)}`"


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
