"""Predicted links go back to where graphs come from, and read back as what they were."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from golde.cli.main import app
from golde.data.loading import load_graph
from golde.errors import GoldeError
from golde.inference import Prediction, Run
from golde.inference.links import PROBABILITY, SCORE, iri, write_links

ODD = [
    Prediction("New York", "läuft durch", 'q"uote\\', -1.5, None, 0.75),
    Prediction("http://example.org/a", "http://example.org/r", "_:b1", -1e-07),
    Prediction("a,b", "<r>", "per%cent", -2.0),
]


def named(path: Path) -> set[tuple[str, str, str]]:
    graph = load_graph(path, valid=0, test=0)
    names = graph.entities
    return {(names[h], graph.relations[r], names[t]) for h, r, t in graph.train.tolist()}


def test_ntriples_hold_every_link_and_a_statement_of_it(tmp_path: Path) -> None:
    rdf = pytest.importorskip("pyoxigraph")
    path = tmp_path / "links.nt"
    write_links(path, ODD, "nt", "https://example.org/name/")
    store = rdf.Store()
    store.load(path.read_bytes(), format=rdf.RdfFormat.N_TRIPLES)
    rows = store.query(
        f"SELECT ?h ?r ?t ?score ?p {{ ?s a rdf:Statement; rdf:subject ?h; rdf:predicate ?r; "
        f"rdf:object ?t; <{SCORE}> ?score. OPTIONAL {{ ?s <{PROBABILITY}> ?p }} ?h ?r ?t }} "
        "ORDER BY DESC(?score)",
        prefixes={"rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"},
    )
    found = [[None if x is None else x.value for x in row] for row in rows]
    base = "https://example.org/name/"
    assert [row[:3] for row in found] == [
        ["http://example.org/a", "http://example.org/r", base + "_%3Ab1"],
        [base + "New%20York", base + "l%C3%A4uft%20durch", base + "q%22uote%5C"],
        [base + "a%2Cb", base + "%3Cr%3E", base + "per%25cent"],
    ]
    assert [float(row[3]) for row in found] == [-1e-07, -1.5, -2.0]
    assert [row[4] and float(row[4]) for row in found] == [None, 0.75, None]
    assert named(path) == {(h, r, t) for h, r, t, *_ in found}  # and nothing of the statements


@given(
    name=st.text(min_size=1).filter(lambda name: not any("\ud800" <= c <= "\udfff" for c in name))
)
@example("http://a:b/")
@example("http://[::1]/")
@example("http://user@host/a#b#c")
@example("a:%zz")
@example("x:/[y]")
@example("http:///")
@example("//a")
@example("tag:a,2026:b?c=d#e")
@example("http://example.org")
@example("http://münchen.example/")
def test_every_name_becomes_an_iri_that_a_parser_takes(name: str) -> None:
    rdf = pytest.importorskip("pyoxigraph")
    line = f"<{iri(name)}> <{iri(name)}> <{iri(name)}> .\n".encode()
    (fact,) = rdf.parse(line, format=rdf.RdfFormat.N_TRIPLES)
    assert fact.subject.value == iri(name)


@pytest.mark.parametrize(
    "name",
    ["http://www.wikidata.org/entity/Q42", "urn:isbn:0451450523", "http://dbpedia.org/resource/Kraków",
     "http://yago-knowledge.org/resource/Tom_(1990)", "https://e.org:8080/a?b=c#d", "mailto:a@b.org"],
)  # fmt: skip
def test_iris_stay_as_they_were_read(name: str) -> None:
    assert iri(name) == name


def test_a_table_for_neo4j_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    write_links(path, ODD, "neo4j", calibrated=True)
    assert named(path) == {link.fact for link in ODD}
    header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")))
    assert header == [":START_ID", ":END_ID", ":TYPE", "score:float", "probability:float"]
    assert [float(row[3]) for row in rows] == [link.score for link in ODD]
    assert [row[4] for row in rows] == ["0.75", "", ""]
    for links in (ODD[1:], []):  # the columns are those of the run, not of the rows
        write_links(path, links, "neo4j")
        assert path.read_text("utf-8").splitlines()[0] == ",".join(header[:4])
        write_links(path, links, "neo4j", calibrated=True)
        assert path.read_text("utf-8").splitlines()[0] == ",".join(header)


@pytest.mark.parametrize("base", ["", "example.org/", "a b:", "http://exa mple/"])
def test_a_base_that_is_no_iri_is_refused(base: str, tmp_path: Path) -> None:
    with pytest.raises(GoldeError, match="is no absolute IRI"):
        write_links(tmp_path / "a.nt", ODD, "nt", base)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def complete(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    words = ["complete", str(run.folder.path), "--top", "6", "--heads", "known"]
    return lambda *more: CliRunner().invoke(app, [*words, *more])


def test_the_command_writes_them_and_score_reads_them_back(
    complete: Callable[..., Any], run: Run
) -> None:
    found = json.loads(complete("--out", "a.csv", "--format", "neo4j", "--json").stdout)
    assert named(Path("a.csv")) == {(f["head"], f["relation"], f["tail"]) for f in found}
    again = CliRunner().invoke(app, ["score", str(run.folder.path), "a.csv", "--json"])
    scores = [fact["score"] for fact in json.loads(again.stdout)]
    assert scores == pytest.approx([fact["score"] for fact in found], rel=1e-5)

    said = complete("--out", "links", "--format", "nt", "--base", "http://e.org/").stdout
    assert said.startswith("written  links (6 links)\n")
    Path("links").rename("links.nt")
    pytest.importorskip("pyoxigraph")
    assert {
        tuple(n.removeprefix("http://e.org/") for n in fact) for fact in named(Path("links.nt"))
    } == {(f["head"], f["relation"], f["tail"]) for f in found}


MISTAKES = {
    "no file": (("--format", "nt"), "give --out FILE"),
    "no folder": (("--out", "none/a.nt"), "no folder none"),
    "another ending": (("--out", "a.csv", "--format", "nt"), "end the name in .nt"),
    "packed": (("--out", "a.nt.gz", "--format", "nt"), "end the name in .nt"),
    "no table": (("--out", "a.parquet", "--format", "neo4j"), "end the name in .csv"),
    "unknown ending": (("--out", "a.ttl"), ".tsv, .csv, .parquet or .nt"),
    "base alone": (("--out", "a.tsv", "--base", "http://e.org/"), "--base is for N-Triples"),
    "bad base": (("--out", "a.nt", "--base", "e"), "'e' is no absolute IRI"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(complete: Callable[..., Any], mistake: str, tmp_path: Path) -> None:
    words, named = MISTAKES[mistake]
    result = complete(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert named in result.stderr
    assert not list(tmp_path.iterdir())
