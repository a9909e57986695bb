"""Dumps of Neo4j are read by their header row, or refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.errors import DataError


def read(path: Path, text: str, columns: str | None = None) -> KnowledgeGraph:
    path.write_text(text, "utf-8")
    return load_graph(path, valid=0, test=0, columns=columns)


def named(graph: KnowledgeGraph) -> list[tuple[str, str, str]]:
    names = graph.entities
    return [(names[h], graph.relations[r], names[t]) for h, r, t in graph.train.tolist()]


FACTS = [("tom", "ACTED_IN", "matrix"), ("ann", "DIRECTED", "matrix")]


@pytest.mark.parametrize(
    "text",
    [
        ":START_ID,:END_ID,:TYPE\ntom,matrix,ACTED_IN\nann,matrix,DIRECTED\n",
        '":START_ID","role",":END_ID",":TYPE"\n"tom","Neo, ""The One""","matrix","ACTED_IN"\n'
        '"ann",,"matrix","DIRECTED"\n',
        ":TYPE,since:int,:START_ID(All),:END_ID(All)\nACTED_IN,1999,tom,matrix\nDIRECTED,1999,ann,matrix\n",
        '"_id","_labels","name","_start","_end","_type","since"\n"tom",":Person","Tom",,,,\n'
        '"matrix",":Film","The Matrix",,,,\n,,,"tom","matrix","ACTED_IN","1999"\n'
        '"ann",":Person","Ann",,,,\n,,,"ann","matrix","DIRECTED",""\n',
    ],
    ids=["plain", "quoted", "spaces and properties", "apoc"],
)
def test_relationships_are_facts(text: str, tmp_path: Path) -> None:
    assert named(read(tmp_path / "relationships.csv", text)) == FACTS


def test_a_table_between_tabs_is_read_alike(tmp_path: Path) -> None:
    text = ":START_ID\t:END_ID\t:TYPE\ntom\tmatrix\tACTED_IN\nann\tmatrix\tDIRECTED\n"
    assert named(read(tmp_path / "relationships.tsv", text)) == FACTS


def test_nodes_among_relationships_are_counted(tmp_path: Path) -> None:
    nodes = "".join(f"{i},:A,,,\n" for i in range(5000))  # more than one batch of rows
    text = f"_id,_labels,_start,_end,_type\n{nodes},,1,2,KNOWS\n"
    graph = read(tmp_path / "all.csv", text)
    assert named(graph) == [("1", "KNOWS", "2")]
    assert "all.csv: 5000 rows of nodes skipped" in graph.notes


def test_a_relationship_without_an_end_is_found_by_its_line(tmp_path: Path) -> None:
    text = "_id,_labels,_start,_end,_type\n1,:A,,,\n,,1,2,KNOWS\n,,1,,KNOWS\n"
    with pytest.raises(DataError, match=r"all\.csv:4: entity name is empty"):
        read(tmp_path / "all.csv", text)


MISTAKES = {
    "nodes": ("personId:ID,name,:LABEL\n1,Tom,Person\n", "these are nodes of Neo4j"),
    "two starts": (":START_ID,:START_ID,:END_ID,:TYPE\n1,2,3,A\n", "more than one :START_ID"),
    "no type": (":START_ID,:END_ID,since:int\n1,2,3\n", "without :TYPE"),
    "two spaces": (
        ":START_ID(Person),:END_ID(Film),:TYPE\n1,1,ACTED_IN\n",
        r"--columns ':START_ID\(Person\),:TYPE,:END_ID\(Film\)'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_read_as_facts_is_refused(mistake: str, tmp_path: Path) -> None:
    text, words = MISTAKES[mistake]
    with pytest.raises(DataError, match=words) as caught:
        read(tmp_path / "dump.csv", text)
    assert caught.value.line == 1


def test_who_knows_better_may_say_so(tmp_path: Path) -> None:
    text = ":START_ID(Person),:END_ID(Film),:TYPE\np1,f1,ACTED_IN\n"
    columns = ":START_ID(Person),:TYPE,:END_ID(Film)"
    assert named(read(tmp_path / "a.csv", text, columns)) == [("p1", "ACTED_IN", "f1")]


def test_a_header_in_small_letters_is_one_too(tmp_path: Path) -> None:
    graph = read(tmp_path / "a.csv", ":start_id,:end_id,:type\n1,2,KNOWS\n2,3,KNOWS\n")
    assert named(graph) == [("1", "KNOWS", "2"), ("2", "KNOWS", "3")]
    facts = "a,schema:id,b\nb,schema:id,c\n"
    assert named(read(tmp_path / "b.csv", facts)) == [
        ("a", "schema:id", "b"),
        ("b", "schema:id", "c"),
    ]


def test_facts_that_only_look_alike_are_facts(tmp_path: Path) -> None:
    assert named(read(tmp_path / "a.csv", "a:TYPE,START_ID,ID\n")) == [("a:TYPE", "START_ID", "ID")]
