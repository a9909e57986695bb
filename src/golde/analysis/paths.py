"""Walking the links of a graph: distances, pieces, what lies on directed cycles, and shortcuts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from golde.data.numbering import Ids

LONGEST_PATH = 2_000
"""Steps that are followed; what is longer, such as one chain of everything, looks no different."""

MIDDLES = 64
"""Entities that are tried as the middle of two links which make a third one a shortcut."""


@dataclass(frozen=True, eq=False)
class Links:
    """Distinct links between n nodes: those of v go to ``to[first[v]:first[v + 1]]``, in order."""

    first: Ids  # (n + 1,)
    to: Ids  # (links,)

    @classmethod
    def of(cls, start: Ids, end: Ids, nodes: int) -> Links:
        """The links given, each once."""
        codes = np.sort(start * nodes + end)  # quicker than np.unique, which hashes first
        codes = codes[np.diff(codes, prepend=-1) > 0]
        begins, ends = np.divmod(codes, max(1, nodes))
        return cls(np.searchsorted(begins, np.arange(nodes + 1)), ends)

    @property
    def nodes(self) -> int:
        return len(self.first) - 1

    @cached_property
    def degree(self) -> Ids:
        return np.diff(self.first)

    @cached_property
    def start(self) -> Ids:
        """Where each link starts."""
        return np.repeat(np.arange(self.nodes, dtype=np.int64), self.degree)

    @cached_property
    def codes(self) -> Ids:
        """Each link as ``start · n + to``, in order."""
        return self.start * self.nodes + self.to

    def follow(self, node: Ids, most: int | None = None) -> tuple[Ids, Ids]:
        """Where links lead from each of some nodes, as (position among them, neighbour) pairs."""
        each = self.degree[node] if most is None else np.minimum(self.degree[node], most)
        which = np.repeat(np.arange(len(node)), each)
        before = np.cumsum(each) - each
        return which, self.to[np.arange(len(which)) + (self.first[node] - before)[which]]

    def distances(self, sources: Ids, longest: int = LONGEST_PATH) -> NDArray[np.int32]:
        """Steps from each source to each node, (sources, n); −1 where none of the paths followed leads.

        Breadth first, from all sources at once; a step costs what the links it looks at cost.
        """
        nodes = self.nodes
        found = np.full(len(sources) * nodes, -1, dtype=np.int32)
        writer = np.empty(len(found), dtype=np.int32)
        row, node = np.arange(len(sources)), sources
        found[row * nodes + node] = 0
        for step in range(1, longest + 1):
            which, node = self.follow(node)
            row = row[which]
            place = row * nodes + node
            new = found[place] < 0
            if not new.any():
                break
            row, node, place = row[new], node[new], place[new]
            found[place] = step
            # Several links may reach a place: only the last that wrote there goes on. No sorting.
            order = np.arange(len(place), dtype=np.int32)
            writer[place] = order
            last = writer[place] == order
            row, node = row[last], node[last]
        return found.reshape(len(sources), nodes)


def contained(codes: Ids, sorted_codes: Ids) -> NDArray[np.bool_]:
    """Which of some codes are among others that are in order."""
    if not len(sorted_codes):
        return np.zeros(len(codes), dtype=np.bool_)
    place = np.minimum(np.searchsorted(sorted_codes, codes), len(sorted_codes) - 1)
    there: NDArray[np.bool_] = sorted_codes[place] == codes
    return there


def pieces(start: Ids, end: Ids, nodes: int) -> Ids:
    """For each node the smallest one that is joined to it by links, in whatever direction."""
    label = np.arange(nodes, dtype=np.int64)
    while True:
        one, other = label[start], label[end]
        apart = one != other
        if not apart.any():
            return label
        np.minimum.at(label, np.maximum(one, other)[apart], np.minimum(one, other)[apart])
        while not np.array_equal(label, shorter := label[label]):
            label = shorter


def knots(links: Links) -> Ids:
    """For each node the number of its strongly connected component: nodes that lead to each other.

    Tarjan (1972), with a stack in place of recursion. It goes from node to node, because whatever works on
    whole arrays takes as many rounds as the longest chain or ring has links.
    """
    first, to = links.first.tolist(), links.to.tolist()
    following, number, low = list(first), [0] * links.nodes, [0] * links.nodes
    knot, open_ = [-1] * links.nodes, list[int]()
    seen = tied = 0
    for root in range(links.nodes):
        path = [] if number[root] else [root]
        while path:
            node = path[-1]
            if not number[node]:
                seen += 1
                number[node] = low[node] = seen
                open_.append(node)
            if following[node] < first[node + 1]:
                other = to[following[node]]
                following[node] += 1
                if not number[other]:
                    path.append(other)
                elif knot[other] < 0:
                    low[node] = min(low[node], number[other])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[node])
            if low[node] == number[node]:
                while knot[node] < 0:
                    knot[open_.pop()] = tied
                tied += 1
    return np.array(knot, dtype=np.int64)


def shortcuts(links: Links, at_a_time: int = 1 << 16) -> NDArray[np.bool_]:
    """Which links a → c have a node b with a → b → c. At most ``MIDDLES`` nodes b are tried for each."""
    start, end, nodes, codes = links.start, links.to, links.nodes, links.codes
    back = Links.of(end, start, nodes)
    onward = links.degree[start] <= back.degree[end]  # b from the side with fewer of them
    found = np.zeros(len(codes), dtype=np.bool_)
    for here in range(0, len(codes), at_a_time):
        rows = np.arange(here, min(here + at_a_time, len(codes)))
        ahead, behind = rows[onward[rows]], rows[~onward[rows]]
        which, middle = links.follow(start[ahead], MIDDLES)
        found[ahead[which[contained(middle * nodes + end[ahead[which]], codes)]]] = True
        which, middle = back.follow(end[behind], MIDDLES)
        found[behind[which[contained(start[behind[which]] * nodes + middle, codes)]]] = True
    return found
