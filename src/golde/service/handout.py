"""What the page shows of runs, as one HTML file to hand to somebody: ``golde report RUN --html FILE``.

It holds entities with many facts, and of each kind of answer as much as keeps the file small. What is
left out is said in the page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from golde._version import __version__
from golde.analysis.coordinates import view
from golde.data.graph import SPLITS
from golde.errors import GoldeError
from golde.inference import Prediction
from golde.models import GoldE
from golde.progress import Progress, silent
from golde.service import answers, requests, suggestions
from golde.service.bundle import bundled, harmless
from golde.service.packing import packed
from golde.service.problems import Problem
from golde.service.roles import Role
from golde.service.shelf import OpenRun, Shelf

MOST_BYTES = 9_500_000
"""Of the file: what mail takes."""
LISTED = 5000
"""Entities that can be found; points are theirs."""
LETTERS = 500_000
"""Of all their names together."""
FACTS = 40_000
DETAILED = 150
"""Entities with predictions and neighbours: of each role in the graph as many."""
REASONED = 2
"""New facts of each that have reasons."""
RELATIONS = 100
"""Relations whose maps and rules are shown."""
COMPONENTS = 16
ROLES, TOP, SUGGESTED, NEIGHBOURS = 12, 10, 3, 12

_TRIMMED = ("points", "reasons", "answers", "suggestions", "details", "facts", "neighbours")


def handout(shelf: Shelf, progress: Progress = silent) -> tuple[str, dict[str, list[str]]]:
    """The file in HTML, and what was left out of each run, in sentences."""
    names = shelf.names
    steps = [_Steps(shelf[name]) for name in names]
    total, done = sum(one.count for one in steps), 0
    held: dict[str, dict[str, Any]] = {}
    for name, one in zip(names, steps, strict=True):
        for _ in one.take():
            done += 1
            progress(done, total)
        held[name] = one.parts
    data = {
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "runs": json.loads(answers.runs(shelf, __version__, folders=False).model_dump_json()),
        "held": held,
        "compared": _comparisons(shelf),
    }
    _trim(held, MOST_BYTES - len(harmless({**data, "held": {}}).encode()))
    left_out = {one.run.name: one.left_out() for one in steps}
    for name, sentences in left_out.items():
        held[name]["left_out"] = sentences
    page = bundled(data, " · ".join([*names, "GoldE"]))
    if len(page.encode()) > MOST_BYTES + 500_000:  # the scripts and a margin
        raise GoldeError(
            f"a file of {', '.join(names)} would be larger than 10 MB however much is left out; name "
            "fewer runs"
        )
    return page, left_out


class _Steps:
    """What is taken from one run, a piece at a time."""

    def __init__(self, run: OpenRun) -> None:
        self.run, self.graph = run, run.run.graph
        order = self._listed()
        letters = torch.tensor([len(self.graph.entities[i]) for i in order.tolist()]).cumsum(0)
        self.listed = order[: max(1, int((letters <= LETTERS).sum()))]
        self.names = [self.graph.entities[i] for i in self.listed.tolist()]
        self.detailed = self.names[:DETAILED]
        self.relations = run.relation_facts.argsort(descending=True, stable=True).tolist()
        self.components = self._components()
        self.parts: dict[str, Any] = {}

    @property
    def count(self) -> int:
        return len(self.detailed) + len(self.relations[:RELATIONS]) + len(self.components)

    def take(self) -> Iterator[None]:
        facts = self.run.entity_facts[self.listed].tolist()
        parts = self.parts = {
            "entities": [list(pair) for pair in zip(self.names, facts, strict=True)],
            "ids": self.listed.tolist(),
            "relations": [
                [self.graph.relations[r], int(self.run.relation_facts[r])] for r in self.relations
            ],
            "facts": self._facts(),
            "suggestions": {},
            "answers": {},
            "neighbours": {},
            "reasons": {},
            "details": {},
            "points": {},
        }
        for component in self.components:
            parts["points"][str(component + 1)] = self._points(component)
            yield
        for relation in self.relations[:RELATIONS]:
            name = self.graph.relations[relation]
            found = answers.relation_in_detail(self.run, name, silent)
            parts["details"][name] = _rounded(found.model_dump(exclude={"run"}))
            yield
        for name in self.detailed:
            self._predict(name)
            yield

    def _components(self) -> list[int]:
        """Places of the components shown: as many of each group, in turn."""
        model = self.run.run.model
        if not isinstance(model, GoldE):
            return []
        first, starts = 0, []
        for term in model.signature:
            starts.append((first, term.count))
            first += term.count
        each = range(max(1, COMPONENTS // len(starts)))
        return [start + i for i in each for start, count in starts if i < count][:COMPONENTS]

    def _listed(self) -> Tensor:
        """Those with the most facts of each role in turn, what these have facts with, then others."""
        order = self.run.entity_facts.argsort(descending=True, stable=True)
        group = self.run.roles[0][order]
        turn = torch.empty_like(group)
        for one in group.unique():
            turn[group == one] = torch.arange(int((group == one).sum()))
        rank = torch.full((len(order),), 2)
        detailed = order[turn.argsort(stable=True)[:DETAILED]]
        rank[detailed] = 0
        for split in SPLITS:
            ends = self.graph.split(split)[:, [0, 2]]
            near = ends[(rank[ends] == 0).any(1)].unique()
            rank[near] = rank[near].clamp(max=1)
        rest = order[rank[order] > 0]
        return torch.cat([detailed, rest[rank[rest].argsort(stable=True)]])[:LISTED]

    def _facts(self) -> list[list[int]]:
        """Facts between entities that are listed: places of head, relation and tail, and the split."""
        place = torch.full((len(self.graph.entities),), -1)
        place[self.listed] = torch.arange(len(self.listed))
        order = torch.tensor(self.relations).argsort()
        rows = []
        for number, split in enumerate(SPLITS):
            head, relation, tail = self.graph.split(split).unbind(1)
            rows.append(
                torch.stack(
                    [place[head], order[relation], place[tail], torch.full_like(head, number)], 1
                )
            )
        table = torch.cat(rows)
        table = table[(table[:, 0] >= 0) & (table[:, 2] >= 0)]
        first = torch.minimum(table[:, 0], table[:, 2]).argsort(stable=True)
        found: list[list[int]] = table[first[:FACTS]].tolist()
        return found

    def _points(self, component: int) -> str:
        seen = view(self.run.run.model, component, self.listed)
        group, names = self.run.roles
        columns: dict[str, Tensor] = {
            "id": self.listed.to(torch.int32),
            **dict(zip("xyz", seen.points.unbind(1), strict=False)),
            "depth": seen.depth,
            "group": group[self.listed].to(torch.int32),
            "facts": self.run.entity_facts[self.listed].to(torch.int32),
        }
        points = answers.Points(seen, len(self.graph.entities), names, columns)
        header = answers.points_header(self.run, points)
        return base64.b64encode(packed(header, columns)).decode()

    def _predict(self, name: str) -> None:
        asked = suggestions.questions(self.run, name, ROLES, TOP, filled=True)
        for (_, question), found in zip(asked, self._answers("mark", asked), strict=True):
            query = question.query
            key = _key(query.head, query.relation, query.tail)
            missing = "tail" if query.tail is None else "head"
            self.parts["answers"][key] = [_short(one, missing) for one in found]
        wanted = suggestions.questions(self.run, name, ROLES, SUGGESTED)
        new = self._answers("drop", wanted)
        roles = [(role, found) for (role, _), found in zip(wanted, new, strict=True)]
        shown = suggestions.suggested(self.run, name, roles).suggested
        self.parts["suggestions"][name] = [
            {
                **group.model_dump(exclude={"answers"}),
                "answers": [
                    [one.answer, _digits(one.score), _digits(one.probability)]
                    for one in group.answers
                ],
            }
            for group in shown
        ]
        near = answers.neighbours(
            self.run, requests.NeighboursQuery(entity=name, top=NEIGHBOURS)
        ).neighbours
        self.parts["neighbours"][name] = [[one.name, _digits(one.distance)] for one in near]
        best = sorted(
            (one for group in shown for one in group.answers),
            key=lambda one: (-(one.probability or 0.0), -one.score),
        )
        for one in best[:REASONED]:
            fact = requests.ExplainRequest(head=one.head, relation=one.relation, tail=one.tail)
            why = answers.explained(self.run, fact, silent).model_dump()
            self.parts["reasons"][_key(one.head, one.relation, one.tail)] = _rounded(why)

    def _answers(
        self, kind: str, asked: list[tuple[Role, answers.Question]]
    ) -> list[list[Prediction]]:
        if not asked:
            return []
        return answers.compute(answers.Key(self.run, kind), [question for _, question in asked])

    def left_out(self) -> list[str]:
        """What the file lacks, counted after it was trimmed."""
        parts, graph = self.parts, self.graph
        splits = [graph.split(split) for split in SPLITS]
        model = self.run.run.model
        components = model.signature.components if isinstance(model, GoldE) else 0
        told = (
            (
                len(parts["entities"]),
                len(graph.entities),
                "entities: some of each role, their neighbours, and others with many facts",
            ),
            (len(parts["facts"]), sum(map(len, splits)), "facts, those between such entities"),
            (
                len(parts["suggestions"]),
                len(graph.entities),
                "entities have predictions, some of each role",
            ),
            (len(parts["details"]), len(graph.relations), "relations have maps and rules"),
            (len(parts["points"]), components, "components of the space are drawn"),
        )
        sentences = [
            f"{held:,} of {all_of_them:,} {what}."
            for held, all_of_them, what in told
            if held < all_of_them
        ]
        sentences.append(
            f"{len(parts['answers']):,} questions have answers and {len(parts['reasons']):,} new facts "
            "reasons; others have none."
        )
        return sentences


def _comparisons(shelf: Shelf) -> dict[str, Any]:
    """Each run with each other that it can be compared with."""
    found = {}
    for first, second in permutations(shelf.names, 2):
        try:
            compared = answers.compared(
                shelf, requests.CompareRequest(first=first, second=second), silent
            )
        except Problem:  # on other graphs, or not ranked: then the page says that it is left out
            continue
        found[_key(first, second)] = _rounded(compared.model_dump())
    return found


def _trim(held: Mapping[str, dict[str, Any]], most: int) -> None:
    """Halve the largest part, the less important half going, until all of them together fit."""
    sizes = {
        (name, kind): len(harmless(parts[kind]).encode())
        for name, parts in held.items()
        for kind in parts
    }
    while sum(sizes.values()) > most:
        name, kind = max((key for key in sizes if key[1] in _TRIMMED), key=lambda key: sizes[key])
        part = held[name][kind]
        if not part:
            return
        half = len(part) // 2
        held[name][kind] = part[:half] if isinstance(part, list) else _first(part, half)
        sizes[name, kind] = len(harmless(held[name][kind]).encode())


def _first(part: Mapping[str, Any], count: int) -> dict[str, Any]:
    return dict(list(part.items())[:count])


def _key(*names: str | None) -> str:
    """As JavaScript writes a list."""
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"))


def _short(found: Prediction, missing: str) -> list[Any]:
    """An answer as ``file.js`` reads it."""
    name = found.tail if missing == "tail" else found.head
    return [name, _digits(found.score), _digits(found.probability), found.known]


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _rounded(content: Any) -> Any:
    """The same with five digits in every number."""
    if isinstance(content, float):
        return _digits(content)
    if isinstance(content, dict):
        return {name: _rounded(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_rounded(value) for value in content]
    return content
