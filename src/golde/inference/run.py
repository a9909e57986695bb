"""A trained run, opened: the graph, the model, and what can be asked of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, RunError
from golde.evaluation.classification import Classification, classification
from golde.evaluation.evaluate import Evaluation, evaluate, figures_of
from golde.evaluation.metrics import HITS
from golde.evaluation.protocol import Protocol
from golde.evaluation.ranking import Ranks, both_sides
from golde.inference.calibrate import calibrate
from golde.inference.calibration import Calibration, Judged
from golde.inference.complete import Completion, complete
from golde.inference.export import export
from golde.inference.gather import Gathered, gather
from golde.inference.heads import Heads
from golde.inference.path_probability import with_probabilities
from golde.inference.paths import PathAnswer, answer_path, parse_path, reversed_path
from golde.inference.predict import Predictor, score_triples
from golde.inference.queries import Prediction, Query
from golde.models import Model
from golde.progress import Progress, silent
from golde.runs import RunFolder
from golde.runs.card import refresh_card
from golde.runs.environment import environment

_HOPS = 2  # facts in a row that are weighed where no number is given


class Run:
    """A finished run; ``golde.load_run`` opens one."""

    folder: RunFolder
    config: Config
    graph: KnowledgeGraph
    model: Model
    calibration: Calibration | None
    """Where answers get their probabilities from; None of a run that is not calibrated."""
    notes: tuple[str, ...]
    """Harmless things found while opening it, in words."""

    def __init__(
        self, folder: RunFolder, device: torch.device | str = "cpu", *, evidence: bool = True
    ) -> None:
        """Without its ``evidence`` if told so, as where that is to be gathered anew."""
        self.folder = folder
        self.model = folder.load_model(device, evidence=evidence)
        self.config, self.graph = folder.config(), folder.graph()
        self._is_stored = evidence or not folder.evidence_file.exists()
        self.calibration, self.notes = _calibration(folder, self.graph)
        if self.config.evidence.hops and not folder.evidence_file.exists():
            again = f"run 'golde evidence {folder.path}'"
            self.notes += (
                f"without the evidence that was configured: it was not gathered; {again}",
            )

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
            device=self.model.device,
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
        self._refuse_unstored()
        machine = environment(self.model.device)
        self.folder.save_metrics(found.protocol.key, {**found.as_dict(), "environment": machine})
        self.store_ranks(found)
        refresh_card(self.folder)

    def store_ranks(self, found: Evaluation) -> None:
        """Keep the ranks behind figures, so that they need not be found again to be compared."""
        ranks = torch.stack([found.ranks.better, found.ranks.ties, found.ranks.candidates])
        self.folder.save_ranks(found.protocol.key, ranks)

    def kept_evaluation(self, split: str = "test", *, bootstrap: int = 1000) -> Evaluation | None:
        """The figures of a split under the standard protocol from ranks kept in the run folder.

        None where there are none of this model that can be, or where they are not those behind the figures
        of ``metrics.json``.
        """
        triples = self.graph.split(split)
        figures, kept = self.folder.metrics().get(split), self.folder.ranks(split)
        if figures is None or kept is None or kept.shape != (3, 2 * len(triples)):
            return None
        better, ties, candidates = kept
        if (kept < 0).any() or (better + ties >= candidates).any():
            return None
        ranks = Ranks(*both_sides(triples, len(self.graph.relations)), *kept)
        protocol = Protocol.of(self.graph, split, triples, resamples=bootstrap)
        found = figures_of(ranks, self.graph, protocol)
        return found if found.mrr == figures["metrics"]["both"]["mrr"] else None

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
        predictor = Predictor(
            self.model,
            self.graph,
            top=top,
            known=known,
            candidates=candidates,
            calibration=self.calibration,
        )
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
        progress: Progress = silent,
    ) -> list[PathAnswer]:
        """The most plausible entities at the other end of a path such as ``"r1,^r2"``, best first.

        From a ``head`` the path is walked forwards, from a ``tail`` back. Without ``beam`` maps are
        composed, with it so many entities are kept after every hop: see ``golde.inference.paths``.
        Answers of a run that is calibrated have a probability where validation facts are enough to
        fit one to this path: see ``golde.inference.path_probability``; ``progress`` is of that.
        """
        directions, start = parse_path(path, self.graph), head
        if tail is not None and head is None:
            directions, start = reversed_path(directions, len(self.graph.relations)), tail
        elif start is None or tail is not None:
            raise GoldeError("a path has one known end; give either head or tail")
        asked = self.model, self.graph
        answers = answer_path(
            *asked, start, directions, beam=beam, top=top, known=known, candidates=candidates
        )
        if self.calibration is None:
            return answers
        return with_probabilities(answers, *asked, directions, beam, self.calibration, progress)

    def score(self, triples: Sequence[tuple[str, str, str]]) -> list[float]:
        """The score of each (head, relation, tail), in the forward direction: of GoldE minus a distance."""
        scores: list[float] = score_triples(self.model, self._ids(triples)).tolist()
        return scores

    def probability(self, triples: Sequence[tuple[str, str, str]]) -> list[float]:
        """The probability of each (head, relation, tail), of a run that is calibrated."""
        ids = self._ids(triples)
        scores = score_triples(self.model, ids).numpy()
        found: list[float] = self.calibrated().probabilities(scores, ids[:, 1].numpy()).tolist()
        return found

    def gather_evidence(
        self,
        hops: int | None = None,
        *,
        joined: bool | None = None,
        walks: int | None = None,
        store: bool = True,
        progress: Progress = silent,
    ) -> Gathered:
        """Weigh what facts in a row say beside the embedding: see ``golde.inference.gather``.

        ``hops`` facts, those of the configuration, or 2; ``joined`` and ``walks`` also as configured if
        unset. Evidence that was there is replaced. From then on every score counts it; figures, and a
        calibration, have to be found anew. Kept in the run's ``evidence.safetensors`` unless told otherwise.
        """
        if store:
            with (
                self.folder.changing_figures()
            ):  # refuse a folder that cannot be written or read, first
                self.folder.metrics()
        settings, before = self.config.evidence, self.model.evidence
        hops = hops if hops is not None else settings.hops or _HOPS
        joined = settings.joined if joined is None else joined
        walks = settings.walks if walks is None else walks
        began = time.perf_counter()
        self.model.evidence = None
        try:
            found = gather(
                self.model,
                self.graph,
                hops,
                joined=joined,
                most_walks=walks,
                seed=self.config.training.seed,
                progress=progress,
            )
        except BaseException:
            self.model.evidence = before
            raise
        self.model.evidence = found.evidence if found.evidence.counts else None
        self.calibration, self.notes, self._is_stored = None, (), store
        if store:
            asked = {"hops": hops, "walks": walks, "joined": joined}
            seconds = round(time.perf_counter() - began, 2)
            self.folder.save_evidence(
                found.evidence, found.as_dict() | {"settings": asked, "seconds": seconds}
            )
            refresh_card(self.folder)
            self.calibration, self.notes = _calibration(self.folder, self.graph)
        return found

    def _refuse_unstored(self) -> None:
        """Figures and probabilities belong to what the run folder holds."""
        if not self._is_stored:
            raise GoldeError(
                f"{self.folder.path}: has other evidence than this run counts, so that what is found cannot "
                "be kept there; gather it with store=True, or evaluate and calibrate with store=False"
            )

    def calibrate(
        self,
        *,
        method: str = "platt",
        prior: float | None = None,
        each: int = 10,
        negatives: Sequence[tuple[str, str, str]] | None = None,
        seed: int = 0,
        store: bool = True,
        progress: Progress = silent,
    ) -> Judged:
        """Fit probabilities on the validation facts: see ``golde.inference.calibrate``.

        They are those of answers as ``predict`` shows them; with a ``prior`` or ``negatives`` those of single
        claims. From then on answers have a ``probability``. Kept in the run's ``calibration.json`` unless
        told otherwise.
        """
        self.calibration, judged = calibrate(
            self.model,
            self.graph,
            method=method,
            prior=prior,
            each=each,
            negatives=None if negatives is None else self._ids(negatives),
            seed=seed,
            progress=progress,
        )
        self.notes = ()
        if store:
            self.store_calibration(judged)
        return judged

    def store_calibration(self, judged: Judged) -> None:
        """Keep the calibration, and how it was judged, in the run's ``calibration.json``."""
        self._refuse_unstored()
        content = self.calibrated().as_dict() | {"judged": judged.as_dict()}
        self.folder.save_calibration(content)
        refresh_card(self.folder)

    def calibrated(self) -> Calibration:
        """The calibration, or an error if there is none."""
        if self.calibration is None:
            path = self.folder.path
            raise GoldeError(
                f"{path}: is not calibrated, so it has no probabilities; run 'golde calibrate {path}'"
            )
        return self.calibration

    def classify(
        self,
        positives: Sequence[tuple[str, str, str]],
        negatives: Sequence[tuple[str, str, str]],
    ) -> dict[str, Classification]:
        """How well facts are told from false claims, with probability ½ or a threshold a relation.

        Both come from the calibration.
        """
        calibration = self.calibrated()
        ids = torch.cat([self._ids(positives), self._ids(negatives)])
        labels, relation = np.arange(len(ids)) < len(positives), ids[:, 1].numpy()
        scores = score_triples(self.model, ids).double().numpy()
        return {
            "probability": classification(
                calibration.probabilities(scores, relation) >= 0.5, labels
            ),
            "threshold": classification(scores > calibration.forward.threshold(relation), labels),
        }

    def complete(
        self,
        top: int | None = 1000,
        *,
        heads: str = "kind",
        relations: Sequence[str] | None = None,
        per_relation: bool = False,
        by: str | None = None,
        min_probability: float | None = None,
        progress: Progress = silent,
    ) -> list[Prediction]:
        """The most plausible facts missing from the graph: see ``golde.inference.complete``.

        ``heads`` are those asked: of the right ``kind`` that lack an answer, ``known`` ones, or ``all`` (see
        ``golde.inference.heads``). Of a run that is calibrated the order is by probability unless ``by`` is
        "score", ``min_probability`` leaves out those below it, and ``top=None`` finds all of the others.
        """
        return self.completion(
            top,
            heads=heads,
            relations=relations,
            per_relation=per_relation,
            by=by,
            min_probability=min_probability,
            progress=progress,
        ).facts

    def completion(
        self,
        top: int | None = 1000,
        *,
        heads: str = "kind",
        relations: Sequence[str] | None = None,
        per_relation: bool = False,
        by: str | None = None,
        min_probability: float | None = None,
        progress: Progress = silent,
    ) -> Completion:
        """``complete`` with the number of queries and the best fact seen, should none be good enough."""
        if min_probability is not None and not 0 <= min_probability <= 1:
            raise GoldeError(f"min_probability is {min_probability}; it must lie in 0 to 1")
        if min_probability is not None or by == "probability":
            self.calibrated()
        return complete(
            self.model,
            self.graph,
            top,
            heads=Heads(self.graph, heads),
            relations=relations,
            per_relation=per_relation,
            by=by,
            calibration=self.calibration,
            min_probability=min_probability,
            progress=progress,
        )

    def export(self, path: str | Path, format: str) -> None:
        """Write embeddings and relation parameters with names: see ``golde.inference.export``."""
        if self.folder.owns(path):
            raise GoldeError(f"{path}: is a file of the run itself; choose another name")
        export(self.model, self.graph, Path(path), format)

    def _ids(self, triples: Sequence[tuple[str, str, str]]) -> Tensor:
        """Facts by name as rows of ids, (n, 3)."""
        entities, relations = self.graph.entities, self.graph.relations
        for i, fact in enumerate(triples):
            if len(fact) != 3:
                raise GoldeError(f"triples[{i}] is {fact!r}; a fact is (head, relation, tail)")
        ids = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in triples]
        return torch.tensor(ids, dtype=torch.int64).view(-1, 3)


def add_evidence(
    folder: RunFolder, device: torch.device | str = "cpu", *, progress: Progress = silent
) -> None:
    """Gather the evidence that the configuration of a finished run asks for, unless it is there."""
    if not folder.config().evidence.hops:
        return
    there = folder.evidence_file.exists()
    try:
        folder.evidence()
    except RunError:  # damaged, or of other parameters
        there = False
    if not there:
        Run(folder, device, evidence=False).gather_evidence(progress=progress)


def _calibration(
    folder: RunFolder, graph: KnowledgeGraph
) -> tuple[Calibration | None, tuple[str, ...]]:
    """The calibration of a run, or none and why: a bad one must not keep the run from being opened."""
    try:
        content = folder.calibration()
        if content is None:
            return None, ()
        try:
            return Calibration.from_dict(content, graph.relations), ()
        except GoldeError as error:
            raise RunError(f"{folder.calibration_file}: {error}; calibrate the run again") from None
    except RunError as error:
        return None, (f"no probabilities: {error}",)
