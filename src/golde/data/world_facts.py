"""The shipped graph as names, without torch: whoever lists the sets needs its counts alone."""

from __future__ import annotations

import lzma
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from golde.data.content import SPLITS, Counts

Fact = tuple[str, str, str]

LICENCE = "CC BY 4.0 (GeoNames), Unicode License V3 (CLDR)"


@cache
def world_facts() -> Mapping[str, list[Fact]]:
    """Its facts as (head, relation, tail), by split and, outside the splits, by pattern."""
    packed = files("golde.data").joinpath("shipped", "world.tsv.xz").read_bytes()
    parts: dict[str, list[Fact]] = defaultdict(list)
    for line in lzma.decompress(packed).decode("utf-8").splitlines():
        part, head, relation, tail = line.split("\t")
        parts[part].append((head, relation, tail))
    return dict(parts)


def world_counts() -> Counts:
    """The sizes of its splits, and what they speak of."""
    splits = {split: world_facts()[split] for split in SPLITS}
    facts = [fact for split in splits.values() for fact in split]
    return Counts(
        entities=len({end for head, _, tail in facts for end in (head, tail)}),
        relations=len({relation for _, relation, _ in facts}),
        **{split: len(rows) for split, rows in splits.items()},
    )
