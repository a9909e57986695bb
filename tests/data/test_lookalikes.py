"""Names that look alike are noted, and kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from golde.data.loading import load_graph
from golde.data.lookalikes import look_alikes

COMPOSED, APART = "J\u00fcrgen", "Ju\u0308rgen"


@pytest.mark.parametrize(
    ("names", "count", "example"),
    [
        ([COMPOSED, APART], "one is", r"'Ju\u0308rgen' and 'J\xfcrgen'"),
        ([f"{APART} ", APART], "one is", r"'Ju\u0308rgen' and 'Ju\u0308rgen '"),
        (["a", "a ", " a", "b"], "2 are", "'a ' and 'a'"),
        (["a\u00a0", "a"], "one is", r"'a\xa0' and 'a'"),
    ],
)
def test_names_of_one_shape_are_noted(names: list[str], count: str, example: str) -> None:
    (found,) = look_alikes(names, "entities")
    assert f"entities, {count} another's" in found
    assert found.endswith(f"such as {example}; each stays by itself")


@pytest.mark.parametrize("names", [[], ["a", "b", " c", COMPOSED, "Zo\u00e9"], [APART, "a "]])
def test_others_are_not(names: list[str]) -> None:
    assert look_alikes(names, "entities") == []


def test_a_graph_that_is_read_has_the_note_and_both_names(tmp_path: Path) -> None:
    file = tmp_path / "facts.tsv"
    rows = [f"{COMPOSED}\tknows\te{i}\n{APART}\tknows \te{i}\n" for i in range(10)]
    file.write_text("".join(rows), encoding="utf-8")
    graph = load_graph(str(file))
    assert {COMPOSED, APART} <= set(graph.entities)
    assert [line for line in graph.notes if "but for spaces" in line] == [
        "facts.tsv: of the names of entities, one is another's but for spaces at an end or how accents are "
        "written, such as 'Ju\\u0308rgen' and 'J\\xfcrgen'; each stays by itself",
        "facts.tsv: of the names of relations, one is another's but for spaces at an end or how accents are "
        "written, such as 'knows ' and 'knows'; each stays by itself",
    ]
