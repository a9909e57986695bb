"""Settings as they are written, in TOML or as ``section.key=value``: plain values, not validated yet."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from golde.errors import ConfigError, RetiredSettingError


class _Retired(NamedTuple):
    """A setting that is no more."""

    holds: Any  # the value that every run has for ever,
    why: str  # in words
    after: str  # the setting of its section that it stood behind


RETIRED = {
    ("model", "curvature"): _Retired(
        "learned", "β of a hyperbolic component is its curvature", after="boost_left"
    ),
    ("training", "label_smoothing"): _Retired(
        0.0, "cross-entropy aims at the answer alone", after="subsampling"
    ),
}
"""Settings that are no more, by section and name."""

_DECIMAL = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?")
"""A number as TOML does not have it, without a digit before the point or after it."""


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        why = "nested too deeply"
    except OSError as error:
        why = f"{error.strerror or error}; check the path and its rights"
    except UnicodeDecodeError as error:
        why = f"byte {error.start + 1} is not UTF-8; save it as UTF-8 text"
    except tomllib.TOMLDecodeError as error:
        why = f"{error}; it must be TOML, such as steps = 2000 under [training]"
    raise ConfigError(f"{path}: cannot read the configuration: {why}")


def apply_override(values: dict[str, Any], override: str) -> None:
    """Put what ``section.key=value`` says into the values; words need no quotes."""
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or len(parts) < 2 or not all(parts):
        raise ConfigError(
            f"--set {override!r}: write section.key=value, such as training.steps=2000"
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = _word(text.strip())
    target = values
    for part in parts[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise ConfigError(f"--set {override!r}: {part!r} is not a section")
    target[parts[-1]] = value


def _word(text: str) -> Any:
    """What is no TOML, as people write it: True, .5 or 1., and words such as a signature without quotes."""
    if _DECIMAL.fullmatch(text):
        return float(text)
    return {"True": True, "False": False}.get(text, text)


def without_retired(values: dict[str, Any], source: str) -> dict[str, Any]:
    """The values without settings that are no more, which runs of before have in their files."""
    for (section, key), retired in RETIRED.items():
        content = values.get(section)
        if not isinstance(content, dict) or key not in content:
            continue
        if content[key] != retired.holds:
            raise RetiredSettingError(
                f"{source}: {section}.{key} = {content[key]!r} is no more: {retired.why}; leave it out, and "
                "open what was trained with it by the version of GoldE that did so"
            )
        values = values | {section: {k: v for k, v in content.items() if k != key}}
    return values
