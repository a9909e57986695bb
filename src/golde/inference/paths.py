"""Answers several hops away: ``e ─d₁→ ? ─d₂→ … ─d_L→ answer``.

Composed maps: the row of e is led along every hop but the last, ``log ∘ G_d ∘ exp`` one after the other
with no entity in between, and what it has become is scored against all entities by the last hop. Beam: the
most probable entities are kept after every hop, a hop's probability being the softmax of its scores over
all entities; an answer's score is the log of its probability summed over the entities kept before it, and
its explanation the most probable path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.geometry import gather
from golde.inference.predict import KNOWN, checked_top
from golde.inference.search import diverged, non_finite, top_k
from golde.models import Model

BACKWARDS = ("^", "⁻¹")
"""Before or after the name of a relation: a hop from its tail to its head."""


@dataclass(frozen=True)
class PathAnswer:
    """An entity at the end of a path, how plausible it is, and how it is reached."""

    answer: str
    score: float  # of composed maps a score of the last hop, of a beam a log-probability
    known: bool | None = None  # whether facts of the graph lead there; None where nobody looked
    via: tuple[str, ...] | None = None  # a beam's entities in between, from the start on
    probability: float | None = None  # that the path leads there, if the run is calibrated


def parse_path(text: str, graph: KnowledgeGraph) -> list[int]:
    """The directions of ``r1,^r2,r3⁻¹``; a relation's name may hold commas itself."""
    parts, directions, at = text.split(","), list[int](), 0
    while at < len(parts):
        for end in range(len(parts), at, -1):
            found = _direction(",".join(parts[at:end]).strip(), graph)
            if found is not None:
                directions.append(found)
                at = end
                break
        else:
            raise _unknown_hop(text, parts[at].strip(), graph)
    return directions


def reversed_path(directions: Sequence[int], relations: int) -> list[int]:
    """The same path walked from its end: hops in reverse order, each the other way."""
    return [(direction + relations) % (2 * relations) for direction in reversed(directions)]


def composed_scores(model: Model, entity: Tensor, directions: Tensor) -> Tensor:
    """Scores of all entities by composed maps, (B, E); queries are entity (B,) and directions (B, L)."""
    rows = gather(model.entity, entity)
    for direction in directions[:, :-1].unbind(1):
        rows = model.transport(rows, direction)
    return model.score_points(rows, directions[:, -1])


def beam_scores(
    model: Model, entity: Tensor, directions: Tensor, width: int
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of all entities by beam, (B, E), and the entities in between, (B, E, L − 1).

    The latter are those of the most probable of the paths that were kept.
    """
    B, E = len(entity), model.entities
    scores = _log_probabilities(model, entity, directions[:, 0])  # (B, E)
    single, via = scores, entity.new_empty(B, E, 0)  # of the most probable path alone
    for direction in directions[:, 1:].unbind(1):
        if non_finite(scores) is not None:
            break  # there is no best of them; who asked sees it in the scores
        kept, middle = top_k(scores, width)  # (B, W)
        W = middle.shape[1]
        asked = middle.flatten(), direction.repeat_interleave(W)
        onward = _log_probabilities(model, *asked).view(B, W, E)
        scores = torch.logsumexp(onward + kept.unsqueeze(2), 1)
        single, best = (onward + single.gather(1, middle).unsqueeze(2)).max(1)  # (B, E)
        before = via.gather(1, middle.unsqueeze(2).expand(-1, -1, via.shape[2]))
        before = torch.cat((before, middle.unsqueeze(2)), 2)  # (B, W, …)
        via = before.gather(1, best.unsqueeze(2).expand(-1, -1, before.shape[2]))
    return scores, via


def reached(graph: KnowledgeGraph, entity: int, directions: Sequence[int], *splits: str) -> Tensor:
    """The entities that known facts of some splits (all by default) lead to, ascending."""
    here, known = torch.tensor([entity]), graph.known(*splits)
    for direction in directions:
        here = known.answers(here, torch.full_like(here, direction))[1].unique()
    return here


@torch.no_grad()
def answer_path(
    model: Model,
    graph: KnowledgeGraph,
    start: str,
    directions: Sequence[int],
    *,
    beam: int | None = None,
    top: int = 10,
    known: str = "mark",
    candidates: Sequence[str] | None = None,
) -> list[PathAnswer]:
    """The most plausible ends of a path from ``start``, best first; of equal ones the lower id."""
    if known not in KNOWN:
        raise GoldeError(f"known is {known!r}; it must be one of {', '.join(KNOWN)}")
    if beam is not None and beam < 1:
        raise GoldeError(f"beam is {beam}; keep at least 1 entity after a hop")
    if not directions:
        raise GoldeError("the path is empty; name one relation or more")
    top, device, entities = checked_top(top), model.device, graph.entities
    first = entities.id(start)
    asked = torch.tensor([first], device=device), torch.tensor([directions], device=device)
    via = None
    if beam is None:
        scores = composed_scores(model, *asked)
    else:
        scores, via = beam_scores(model, *asked, beam)
    if (at := non_finite(scores)) is not None:
        raise diverged((start, "…", entities[at[1]]), float(scores[at]))
    scores = scores.cpu()
    if candidates is not None:
        others = torch.ones(len(entities), dtype=torch.bool)
        others[entities.ids(candidates)] = False
        scores[:, others] = -torch.inf
    led_to = torch.zeros(len(entities), dtype=torch.bool)
    if known != "keep":
        led_to[reached(graph, first, directions)] = True
    if known == "drop":
        scores[:, led_to] = -torch.inf
    values, found = top_k(scores, top)
    return [
        PathAnswer(
            entities[id],
            score,
            None if known == "keep" else bool(led_to[id]),
            None if via is None else tuple(entities[i] for i in via[0, id].tolist()),
        )
        for score, id in zip(values[0].tolist(), found[0].tolist(), strict=True)
        if score > -torch.inf
    ]


def _log_probabilities(model: Model, entity: Tensor, direction: Tensor) -> Tensor:
    return torch.log_softmax(model.score(entity, direction), 1)


def _direction(name: str, graph: KnowledgeGraph) -> int | None:
    """The direction that a hop names, if it names one; a name as it stands comes first."""
    relations = graph.relations
    if name in relations:
        return relations.id(name)
    for bare in (name.removeprefix(BACKWARDS[0]), name.removesuffix(BACKWARDS[1])):
        if bare != name and bare.strip() in relations:
            return relations.id(bare.strip()) + len(relations)
    return None


def _unknown_hop(text: str, name: str, graph: KnowledgeGraph) -> GoldeError:
    bare = name.removeprefix(BACKWARDS[0])
    if not bare.removesuffix(BACKWARDS[1]).strip():
        return GoldeError(f"path {text!r}: a hop is empty; write relations as r1,^r2")
    near = ", ".join(map(repr, graph.relations.closest(bare.removesuffix(BACKWARDS[1]), 3)))
    hint = f"did you mean {near}?" if near else "write relations as r1,^r2"
    return GoldeError(f"path {text!r}: unknown relation {bare!r}; {hint}")
