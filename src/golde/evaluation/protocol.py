"""The protocol card: what a figure means, printed and stored with every figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from golde.data.describe import unseen
from golde.data.graph import KnowledgeGraph


@dataclass(frozen=True)
class Protocol:
    """How the ranks behind a set of figures came about."""

    graph: str
    split: str
    triples: int  # ranked
    split_triples: int  # in the split; more than were ranked if those are a sample
    candidates: int  # entities each query is ranked against, before filtering
    unseen: int  # ranked triples with an entity that no training fact mentions
    self_filter: bool = False
    resamples: int = 0
    seed: int = 0
    ties: str = "realistic"
    filter: tuple[str, ...] = ("train", "valid", "test")
    sides: tuple[str, ...] = ("head", "tail")

    @classmethod
    def of(
        cls,
        graph: KnowledgeGraph,
        split: str,
        triples: Tensor,
        *,
        self_filter: bool = False,
        resamples: int = 0,
        seed: int = 0,
    ) -> Protocol:
        return cls(
            graph=graph.name,
            split=split,
            triples=len(triples),
            split_triples=len(graph.split(split)),
            candidates=len(graph.entities),
            unseen=unseen(graph, triples)["facts"],
            self_filter=self_filter,
            resamples=resamples,
            seed=seed,
        )

    @property
    def key(self) -> str:
        """The name to store figures under; that of the split alone is for the standard protocol."""
        sampled = "+sample" if self.triples < self.split_triples else ""
        return self.split + sampled + ("+self-filter" if self.self_filter else "")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    def card(self) -> list[str]:
        """The same in words, one line a point."""
        ranked = "" if self.triples == self.split_triples else f"{self.triples:,} of "
        ranked += _counted(self.split_triples, f"{self.split} triple")
        lines = [
            f"ranked      {ranked} of {self.graph}",
            f"candidates  {self.candidates:,} for each {' and each '.join(self.sides)}, all entities",
            f"filter      no candidate makes another known fact of {', '.join(self.filter)}",
            "self-filter "
            + (
                "ON (not the standard): the query's own entity is no candidate"
                if self.self_filter
                else "off: the query's own entity is a candidate like any other"
            ),
            f"ties        {self.ties}: a tied answer gets the mean of the ranks it could have",
            f"unseen      {_counted(self.unseen, 'triple')} with an entity absent from train, "
            "ranked all the same",
        ]
        if self.resamples:
            lines.append(
                f"intervals   95%, percentile bootstrap over triples, "
                f"{self.resamples:,} resamples, seed {self.seed}"
            )
        return lines


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count != 1)}"
