"""GoldE as a PyKEEN model. Needs the extra ``pykeen``.

``pipeline(model=GoldEModel, model_kwargs={"signature": "P4x4 Q5x4"}, …)`` trains it with PyKEEN's loops,
losses, samplers and evaluators. The class is made when first asked for, so that this module imports without
PyKEEN.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from golde.errors import MissingExtraError
from golde.interop.space import build_golde, start_again
from golde.models import GoldE

DOC = """GoldE with a signature such as ``P4x4 Q5x4``; ``settings`` are others of ``[model]``.

What is left over are options of ``pykeen.models.Model``. ``golde`` holds the parameters."""


def __getattr__(name: str) -> Any:
    if name == "GoldEModel":
        return _model_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Scores:
    """What PyKEEN asks of a model, answered by ``golde``; ids are those of its triples factory.

    A fact has one score whichever end is asked for. With a triples factory that has inverse triples, PyKEEN
    asks for heads through relations of their own, which is what GoldE calls reciprocal.
    """

    golde: GoldE
    num_entities: int
    num_relations: int

    def score_hrt(self, hrt_batch: Tensor, *, mode: Any = None) -> Tensor:
        """The score of each fact, (B, 1)."""
        return self.golde.score_triples(hrt_batch).unsqueeze(1)

    def score_t(
        self,
        hr_batch: Tensor,
        *,
        slice_size: int | None = None,
        mode: Any = None,
        tails: Tensor | None = None,
    ) -> Tensor:
        """Scores of tails, of all entities when none are given, (B, N)."""
        head, relation = hr_batch.unbind(1)
        return self._score(head, relation, tails)

    def score_h(
        self,
        rt_batch: Tensor,
        *,
        slice_size: int | None = None,
        mode: Any = None,
        heads: Tensor | None = None,
    ) -> Tensor:
        """Scores of heads, of all entities when none are given, (B, N)."""
        relation, tail = rt_batch.unbind(1)
        return self._score(tail, relation + self.num_relations, heads)

    def score_r(
        self,
        ht_batch: Tensor,
        *,
        slice_size: int | None = None,
        mode: Any = None,
        relations: Tensor | None = None,
    ) -> Tensor:
        """Scores of relations, of all when none are given, (B, R)."""
        if relations is None:
            relations = torch.arange(self.num_relations, device=ht_batch.device)
        relations = relations.expand(len(ht_batch), relations.shape[-1])
        head, tail = (end.unsqueeze(1).expand_as(relations).flatten() for end in ht_batch.unbind(1))
        return self.golde.score_pairs(head, relations.flatten(), tail).view(relations.shape)

    def collect_regularization_term(self) -> Tensor:
        """Nothing: PyKEEN's regularisers act on representations, which GoldE keeps to itself."""
        return self.golde.entity.new_zeros(())

    def _score(self, entity: Tensor, direction: Tensor, candidates: Tensor | None) -> Tensor:
        if candidates is None or candidates.dim() == 1:
            return self.golde.score(entity, direction, candidates)
        entity, direction = (
            side.unsqueeze(1).expand_as(candidates).flatten() for side in (entity, direction)
        )
        scores = self.golde.score_pairs(entity, direction, candidates.flatten())
        return scores.view(candidates.shape)

    def _reset_parameters_(self) -> None:
        start_again(self.golde)

    def _get_entity_len(self, *, mode: Any) -> int:
        return self.num_entities


@cache
def _model_class() -> Any:
    try:
        from pykeen.losses import NSSALoss
        from pykeen.models import Model
    except ImportError:
        raise MissingExtraError("GoldE in PyKEEN", "pykeen") from None

    def __init__(
        self: Any, signature: str, settings: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        Model.__init__(self, **options)
        self.golde = build_golde(signature, settings, self.num_entities, self.num_relations)

    return type(
        "GoldEModel",
        (_Scores, Model),
        {
            "__doc__": DOC,
            "__module__": __name__,
            "__init__": __init__,
            "hpo_default": {},
            "loss_default": NSSALoss,
            "loss_default_kwargs": {"margin": GoldE.default_margin, "adversarial_temperature": 1.0},
        },
    )
