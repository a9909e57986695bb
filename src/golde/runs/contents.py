"""What the files of a run must hold: read by people and other programs, they may be damaged or not ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from golde.data.graph import SPLITS
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError, RunError
from golde.runs.atomic import RESTORE

FORMAT_VERSION = 1

_ABOUT = {
    "graph": str,
    "digest": str,
    **dict.fromkeys(("entities", "relations", *SPLITS), int),
    "environment": dict,
    "finished": bool,
}
_ENVIRONMENT = {
    **dict.fromkeys(("golde", "torch", "python", "platform", "device"), str),
    "threads": int,
}
_PARTS: dict[str, dict[str, type]] = {
    "environment": _ENVIRONMENT,
    "resumed_in": {},
    "validation": {"step": int, "mrr": float},
    "extensions": {
        **dict.fromkeys(("from", "facts_from"), str),
        **dict.fromkeys(("new_entities", "new_facts", "between_known", "repeated"), int),
        **dict.fromkeys(("sweeps", "adrift", "steps"), int),
        **dict.fromkeys(("adrift_names", "losses", "notes"), list),
        "seconds": float,
    },
}
"""What readers of run.json ask of its parts."""

_ONCE_FINISHED = {"steps": int, "chosen_step": int, "seconds": float, "validation": list}


def checked_about(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The contents of ``run.json``, which this version can read and has what is asked of it."""
    if about.get("format") != FORMAT_VERSION:
        raise RunError(
            f"{path}: written in run format {about.get('format')!r}, this "
            f"version reads {FORMAT_VERSION}; use the version of GoldE that wrote it"
        )
    wanted = _ABOUT | (_ONCE_FINISHED if about.get("finished") else {})
    for key, kind in wanted.items():
        if type(about.get(key)) is not kind:  # true is an int as well
            raise RunError(f"{path}: {key!r} is missing or no {kind.__name__}; {RESTORE}")
    for key, parts in _PARTS.items():
        found = [about[key]] if key == "environment" else about.get(key, [])
        if not isinstance(found, list) or not all(_has(one, parts) for one in found):
            raise RunError(f"{path}: {key!r} is damaged; {RESTORE}")
    return about


def _has(part: object, wanted: dict[str, type]) -> bool:
    """Whether a part of ``run.json`` has entries of these types."""
    return isinstance(part, dict) and all(
        type(part.get(key)) is kind for key, kind in wanted.items()
    )


def checked_vocabulary(path: Path, names: object, kind: str, count: int) -> Vocabulary:
    """As many names as there should be, all different."""
    if (
        not isinstance(names, list)
        or len(names) != count
        or not all(isinstance(n, str) for n in names)
    ):
        raise RunError(f"{path}: does not list {count} {kind} names; {RESTORE}")
    try:
        return Vocabulary(names, kind)
    except GoldeError as error:
        raise RunError(f"{path}: {error}; {RESTORE}") from None


def are_figures(entry: object) -> bool:
    """Whether an entry of ``metrics.json`` holds what its readers ask for."""
    if not isinstance(entry, dict):
        return False
    protocol, metrics, relations = (entry.get(k) for k in ("protocol", "metrics", "relations"))
    return (
        isinstance(protocol, dict)
        and protocol.keys() >= {"triples", "candidates", "filter", "self_filter"}
        and all(type(protocol[key]) is int for key in ("triples", "candidates"))
        and isinstance(protocol["filter"], list)
        and isinstance(metrics, dict)
        and _is_block(metrics.get("both"))
        and isinstance(relations, dict)
        and all(
            _is_block(block) and _is_block(block.get("head")) and _is_block(block.get("tail"))
            for block in relations.values()
        )
    )


def _is_block(block: object) -> bool:
    """Whether it is a table of figures, the MRR among them; there may be smaller tables inside."""
    return (
        isinstance(block, dict)
        and block.keys() >= {"mrr", "count"}
        and all(isinstance(value, int | float | dict) for value in block.values())
    )


def checked_facts(path: Path, split: str, triples: Tensor | None, limits: Tensor) -> Tensor:
    """The facts of one split, their ids checked against the number of names (3,)."""
    if (
        triples is not None
        and triples.dim() == 2
        and triples.shape[1] == 3
        and not triples.is_floating_point()
    ):
        triples = triples.long()
        if ((triples >= 0) & (triples < limits)).all():
            return triples
    raise RunError(f"{path}: {split!r} does not hold facts as rows of three ids; {RESTORE}")
