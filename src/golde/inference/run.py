"""A trained run, opened: the graph, the model, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.evaluate import Evaluation, evaluate
from golde.evaluation.metrics import HITS
from golde.inference.complete import complete
from golde.inference.export import export
from golde.inference.paths import PathAnswer, answer_path, parse_path, reversed_path
from golde.inference.predict import Predictor, score_triples
from golde.inference.queries import Prediction, Query
from golde.models import Model
from golde.progress import Progress, silent
from golde.runs import RunFolder
from golde.runs.environment import environment


class Run:
    """A finished run; ``golde.load_run`` opens one."""

    folder: RunFolder
    config: Config
    graph: KnowledgeGraph
    model: Model

    def __init__(self, folder: RunFolder, device: torch.device | str = "cpu") -> None:
        self.folder = folder
        self.model = folder.load_model(device)
        self.config, self.graph = folder.config(), folder.graph()

    def __repr__(self) -> str:
        return f"Run({str(self.folder.path)!r}: {self.config.model.space} on {self.graph!r})"

    def evaluate(
        self,
        split: str = "test",
        *,
        self_filter: bool = False,
        hits: Sequence[int] = HITS,
        baselines: bool = True,
        bootstrap: int = 1000,
        store: bool = True,
        progress: Progress = silent,
    ) -> Evaluation:
        """Filtered ranking of a split, stored in the run's ``metrics.json`` unless told otherwise."""
        found = evaluate(
            self.model.scorer(),
            self.graph,
            split,
            self_filter=self_filter,
            hits=hits,
            baselines=baselines,
            bootstrap=bootstrap,
            device=self.model.entity.device,
            progress=progress,
        )
        if store:
            self.store(found)
        return found

    def store(self, found: Evaluation) -> None:
        """Keep figures in the run's ``metrics.json``.

        Those under the self-filter get a key of their own, so that they never stand where those of
        the standard protocol are expected.
        """
        machine = environment(self.model.entity.device)
        self.folder.save_metrics(found.protocol.key, {**found.as_dict(), "environment": machine})

    def predict(
        self,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        *,
        top: int = 10,
        known: str = "mark",
        candidates: Sequence[str] | None = None,
    ) -> list[Prediction]:
        """The most plausible answers to a query with one of its three names left out, best first.

        ``known`` facts, those of any split, are marked with their split, kept as they are (without
        looking them up), or dropped. ``candidates`` are the only names considered as answers:
        entities, or relations where the relation is left out. Of equal scores the lower id comes
        first. Scores are those of the direction asked: with ``model.reciprocal`` a query for heads
        has parameters of its own, and its scores are not those of ``score``.
        """
        query = Query(head, relation, tail)
        return self.predict_many([query], top=top, known=known, candidates=candidates)[0]

    def predict_many(
        self,
        queries: Sequence[Query],
        *,
        top: int = 10,
        known: str = "mark",
        candidates: Sequence[str] | None = None,
        progress: Progress = silent,
    ) -> list[list[Prediction]]:
        """``predict`` for many queries, a block of them at a time, in the order given."""
        predictor = Predictor(self.model, self.graph, top=top, known=known, candidates=candidates)
        answers = []
        for found in predictor.stream(queries):
            answers.append(found)
            progress(len(answers), len(queries))
        return answers

    def predict_path(
        self,
        path: str,
        *,
        head: str | None = None,
        tail: str | None = None,
        beam: int | None = None,
        top: int = 10,
        known: str = "mark",
        candidates: Sequence[str] | None = None,
    ) -> list[PathAnswer]:
        """The most plausible entities at the other end of a path such as ``"r1,^r2"``, best first.

        From a ``head`` the path is walked forwards, from a ``tail`` back. Without ``beam`` maps are
        composed, with it so many entities are kept after every hop: see ``golde.inference.paths``.
        """
        directions, start = parse_path(path, self.graph), head
        if tail is not None and head is None:
            directions, start = reversed_path(directions, len(self.graph.relations)), tail
        elif start is None or tail is not None:
            raise GoldeError("a path has one known end; give either head or tail")
        return answer_path(
            self.model,
            self.graph,
            start,
            directions,
            beam=beam,
            top=top,
            known=known,
            candidates=candidates,
        )

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float]:
        """The score of each (head, relation, tail), in the forward direction: of GoldE minus a distance."""
        entities, relations = self.graph.entities, self.graph.relations
        for i, fact in enumerate(triples):
            if len(fact) != 3:
                raise GoldeError(f"triples[{i}] is {fact!r}; a fact is (head, relation, tail)")
        ids = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in triples]
        scores: list[float] = score_triples(
            self.model, torch.tensor(ids, dtype=torch.int64).view(-1, 3)
        ).tolist()
        return scores

    def complete(
        self,
        top: int = 1000,
        *,
        relations: Sequence[str] | None = None,
        per_relation: bool = False,
        progress: Progress = silent,
    ) -> list[Prediction]:
        """The most plausible facts missing from the graph: see ``golde.inference.complete``."""
        return complete(
            self.model,
            self.graph,
            top,
            relations=relations,
            per_relation=per_relation,
            progress=progress,
        )

    def export(self, path: str | Path, format: str) -> None:
        """Write embeddings and relation parameters with names: see ``golde.inference.export``."""
        if self.folder.owns(path):
            raise GoldeError(f"{path}: is a file of the run itself; choose another name")
        export(self.model, self.graph, Path(path), format)
