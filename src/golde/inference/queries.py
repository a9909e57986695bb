"""What can be asked of a run, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from golde.errors import GoldeError


@dataclass(frozen=True)
class Query:
    """A fact with one of its three names left out: the unknown."""

    head: str | None = None
    relation: str | None = None
    tail: str | None = None

    def __post_init__(self) -> None:
        missing = [self.head, self.relation, self.tail].count(None)
        if missing != 1:
            what = "leaves nothing to find" if not missing else f"leaves {missing} names out"
            raise GoldeError(
                f"the query {self} {what}; leave out exactly one of head, relation and tail"
            )

    def __str__(self) -> str:
        names = (self.head, self.relation, self.tail)
        return f"({', '.join('?' if name is None else name for name in names)})"

    def answered(self, name: str) -> tuple[str, str, str]:
        """The fact with the unknown filled in."""
        head, relation, tail = (
            name if given is None else given for given in (self.head, self.relation, self.tail)
        )
        return head, relation, tail


@dataclass(frozen=True)
class Prediction:
    """A fact, how plausible the model finds it, and where it is known from."""

    head: str
    relation: str
    tail: str
    score: float  # minus a distance: higher is more plausible
    known: str | None = None  # the split that holds the fact, if one does and it was looked up
    probability: float | None = None  # that it is true, if the run is calibrated

    @property
    def fact(self) -> tuple[str, str, str]:
        """Head, relation and tail."""
        return self.head, self.relation, self.tail
