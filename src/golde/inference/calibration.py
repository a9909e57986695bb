"""A fitted calibration: what a run keeps of it, and how it turns scores into probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError
from golde.evaluation.calibration import (
    Array,
    Fit,
    Ids,
    Isotonic,
    Map,
    Platt,
    check_choice,
    with_prior,
    without_prior,
)
from golde.evaluation.reliability import BINS, Reliability
from golde.inference.queries import Prediction

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Judged:
    """Probabilities of facts and negatives that had no part in the fit, before it and after."""

    before: Reliability  # of σ(score + margin), what the loss of training takes a score for
    after: Reliability
    relations: Mapping[str, tuple[Reliability, Reliability]]  # before and after of each

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; of relations without their bins."""
        return {
            "bins": BINS,
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "relations": {
                name: dict(zip(("before", "after"), map(_figures, both), strict=True))
                for name, both in self.relations.items()
            },
        }


@dataclass(frozen=True)
class Calibration:
    """Maps from the scores of a run to probabilities, one for each relation and direction.

    A model with reciprocal relations scores a fact in two ways, as an answer to a query for tails
    (``forward``, also what ``score`` and ``complete`` give) or for heads (``backward``). Any other has one
    score, and no ``backward``.
    """

    method: str
    prior: float | None  # None: facts are as common as among the answers that were fitted
    facts: Mapping[str, int]  # that were asked for or fitted, by relation
    negatives: Mapping[str, Any]  # where they came from, and how many
    relations: Vocabulary
    forward: Fit
    backward: Fit | None = None

    def probabilities(self, scores: Array, relation: Ids, *, backward: bool = False) -> Array:
        """The probability of each score (n,) of facts of each relation (n,)."""
        fit = self.backward if backward and self.backward is not None else self.forward
        found = fit(scores.astype(np.float64), relation)
        return found if self.prior is None else with_prior(found, self.prior)

    def annotated(
        self, predictions: Sequence[Prediction], *, backward: bool = False
    ) -> list[Prediction]:
        """The predictions with their probabilities."""
        scores = np.array([prediction.score for prediction in predictions], dtype=np.float64)
        relation = self.relations.ids([prediction.relation for prediction in predictions]).numpy()
        found = self.probabilities(scores, relation, backward=backward).tolist()
        return [
            replace(prediction, probability=p)
            for prediction, p in zip(predictions, found, strict=True)
        ]

    def least_scores(self, probability: float) -> Tensor:
        """The lowest forward score of each relation with at least this probability, (R,) in float64."""
        prior = self.prior
        wanted = probability if prior is None else without_prior(probability, prior)
        maps = (self.forward.own.get(r, self.forward.overall) for r in range(len(self.relations)))
        return torch.tensor([map.least_score(wanted) for map in maps], dtype=torch.float64)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        directions = {"forward": self.forward, "backward": self.backward}
        return {
            "format": FORMAT_VERSION,
            "method": self.method,
            "prior": self.prior,
            "facts": dict(self.facts),
            "negatives": dict(self.negatives),
            **{
                name: None if fit is None else self._fit_as_dict(fit)
                for name, fit in directions.items()
            },
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any], relations: Vocabulary) -> Calibration:
        """What ``as_dict`` gave, or an error that says what is wrong with it."""
        if content.get("format") != FORMAT_VERSION:
            raise GoldeError(
                f"written in format {content.get('format')!r}, this version reads {FORMAT_VERSION}"
            )
        try:
            forward, backward = content["forward"], content["backward"]
            method, prior = content["method"], content["prior"]
            prior = None if prior is None else float(prior)
            check_choice(method, prior)
            return cls(
                method,
                prior,
                content["facts"],
                content["negatives"],
                relations,
                _fit_from_dict(forward, relations),
                None if backward is None else _fit_from_dict(backward, relations),
            )
        except GoldeError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise GoldeError(f"does not hold a calibration: {error!r}") from None

    def _fit_as_dict(self, fit: Fit) -> dict[str, Any]:
        own = {r: asdict(map) for r, map in fit.own.items()}
        return {
            "overall": {"threshold": fit.overall_threshold, **asdict(fit.overall)},
            "relations": {
                self.relations[r]: {"threshold": threshold, **own.get(r, {})}
                for r, threshold in fit.thresholds.items()
            },
        }


def _fit_from_dict(content: dict[str, Any], relations: Vocabulary) -> Fit:
    each = {relations.id(name): values for name, values in content["relations"].items()}
    return Fit(
        overall=_map_from_dict(content["overall"]),
        overall_threshold=float(content["overall"]["threshold"]),
        own={r: _map_from_dict(values) for r, values in each.items() if len(values) > 1},
        thresholds={r: float(values["threshold"]) for r, values in each.items()},
    )


def _map_from_dict(values: dict[str, Any]) -> Map:
    if "slope" in values:
        return Platt(float(values["slope"]), float(values["offset"]))
    return Isotonic(tuple(map(float, values["score"])), tuple(map(float, values["probability"])))


def _figures(found: Reliability) -> dict[str, float]:
    return {"ece": found.ece, "brier": found.brier, "log_loss": found.log_loss}
