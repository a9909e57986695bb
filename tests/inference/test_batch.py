"""Queries, facts and names from files; answers into files."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from golde.errors import DataError, GoldeError, MissingExtraError
from golde.inference import Prediction, Query, Run
from golde.inference.batch import (
    predict_file,
    read_names,
    read_queries,
    read_triples,
    write_predictions,
)

QUERIES = [Query("p0", "next"), Query(None, "twin", "q2"), Query("q0", None, "q3")]
TEXT = "p0\tnext\t?\n\ttwin\tq2\nq0\t?\tq3\n"


def table(path: Path) -> list[dict[str, object]]:
    """A table as rows, whichever kind it is."""
    if path.suffix == ".parquet":
        rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
        return rows
    sign = "," if path.suffix == ".csv" else "\t"
    header, *lines = (line.split(sign) for line in path.read_text("utf-8").splitlines())
    kinds = {"query": int, "rank": int, "score": float}
    return [
        {name: kinds.get(name, str)(cell) for name, cell in zip(header, line, strict=True)}
        | ({"known": None} if line[-1] == "" else {})
        for line in lines
    ]


def row(prediction: Prediction) -> dict[str, object]:
    """Without the probability, which a run has only once it is calibrated."""
    return {name: value for name, value in vars(prediction).items() if name != "probability"}


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet"])
def test_answers_to_a_file_are_those_of_predict(
    run: Run, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.inference.batch._ROWS", 4)  # more than one block
    source, target = tmp_path / "queries.tsv", tmp_path / f"answers{suffix}"
    source.write_text(TEXT, "utf-8")
    seen: list[tuple[int, int]] = []
    count = predict_file(run, source, target, top=4, progress=lambda *at: seen.append(at))
    expected = [
        {"query": number, "rank": rank, **row(prediction)}
        for number, query in enumerate(QUERIES, 1)
        for rank, prediction in enumerate(run.predict_many([query], top=4)[0], 1)
    ]
    assert table(target) == expected
    assert count == len(expected) == 4 + 4 + 3
    assert {line["known"] for line in expected} >= {None, "train"}
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_wishes_reach_the_batch(run: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "queries.tsv", tmp_path / "answers.tsv"
    source.write_text("p0\tnext\t?\n", "utf-8")
    predict_file(run, source, target, known="drop", candidates=["p1", "p2"])
    assert [line["tail"] for line in table(target)] == ["p2"]
    predict_file(run, source, target, known="drop", candidates=["p1"])  # no answer at all
    assert table(target) == []


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet"])
def test_predictions_as_a_table(run: Run, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"found{suffix}"
    for found in (run.complete(7, heads="known"), []):
        write_predictions(target, found, known=True)
        assert table(target) == [row(prediction) for prediction in found]
        write_predictions(target, found)
        assert table(target) == [
            {name: cell for name, cell in row(prediction).items() if name != "known"}
            for prediction in found
        ]


def test_names_with_commas_and_quotes_survive_a_csv(tmp_path: Path) -> None:
    odd = Prediction('"a", b', "läuft", "c\td", -1.5, None, 0.25)
    write_predictions(tmp_path / "odd.csv", [odd], calibrated=True)
    assert (tmp_path / "odd.csv").read_bytes().decode() == (
        'head,relation,tail,score,probability\n"""a"", b",läuft,c\td,-1.5,0.25\n'
    )


def test_nothing_half_written_stays(run: Run, diverged: Run, tmp_path: Path) -> None:
    source = tmp_path / "queries.tsv"
    source.write_text(TEXT, "utf-8")
    for suffix in (".tsv", ".parquet"):
        with pytest.raises(GoldeError, match="diverged"):
            predict_file(diverged, source, tmp_path / f"answers{suffix}")
    with pytest.raises(GoldeError, match=r"answers\.xlsx: .* name it \.tsv, \.csv or \.parquet"):
        predict_file(run, source, tmp_path / "answers.xlsx")
    with pytest.raises(GoldeError, match="cannot be written: No such file"):
        predict_file(run, source, tmp_path / "nowhere" / "answers.tsv")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode() + b"\r\n\r\n",
        b"head\trelation\ttail\n" + TEXT.encode().rstrip(b"\n"),
        b"object\tsubject\tpredicate\n?\tp0\tnext\nq2\t\ttwin\nq3\tq0\t?\n",
    ],
    ids=["plain", "BOM, CR LF and blank lines", "header", "other order"],
)
def test_queries_from_a_file(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "queries.tsv"
    path.write_bytes(content)
    assert read_queries(path, run.graph) == QUERIES
    packed = tmp_path / "queries.tsv.gz"
    packed.write_bytes(gzip.compress(content))
    assert read_queries(packed, run.graph) == QUERIES


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"p0,next,?\n,twin,q2\nq0,?,q3\n", None),
        (
            b"\xef\xbb\xbf\r\nsubject,object,predicate\r\np0,?,next\r\n\r\n?,q2,twin\r\nq0,q3,\r\n",
            None,
        ),
        (
            b'no,item,"value",property\n1,p0,?,"next"\n2,,q2,twin\n3,q0,q3,?\n',
            "item,property,value",
        ),
        (b"1,p0,?,next\n2,?,q2,twin\n3,q0,q3,?\n", "2,4,3"),
    ],
    ids=["plain", "header, BOM, CR LF and blank lines", "columns by name", "columns by position"],
)
def test_queries_from_a_csv(run: Run, tmp_path: Path, content: bytes, columns: str | None) -> None:
    path = tmp_path / "queries.csv"
    path.write_bytes(content)
    assert read_queries(path, run.graph, columns) == QUERIES
    packed = tmp_path / "queries.csv.gz"
    packed.write_bytes(gzip.compress(content))
    assert read_queries(packed, run.graph, columns) == QUERIES


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ({"a": ["p0", "?", "q0"], "b": ["next", "twin", "?"], "c": ["?", "q2", "q3"]}, None),
        ({"o": [None, "q2", "q3"], "s": ["p0", "", "q0"], "p": ["next", "twin", None]}, None),
        (
            {
                "no": [1, 2, 3],
                "value": ["?", "q2", "q3"],
                "vector": [[0.5]] * 3,  # of no concern, and no text
                "item": ["p0", None, "q0"],
                "property": ["next", "twin", None],
            },
            "item,property,value",
        ),
        (
            {
                "n": [1, 2, 3],
                "a": ["p0", "?", "q0"],
                "b": ["?", "q2", "q3"],
                "c": ["next", "twin", ""],
            },
            "2,4,3",
        ),
    ],
    ids=["in order", "well-known names and nulls", "columns by name", "columns by position"],
)
def test_queries_from_parquet(
    run: Run,
    tmp_path: Path,
    table: dict[str, list[object]],
    columns: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("golde.inference.batch._ROWS", 2)  # more than one block
    path = tmp_path / "queries.parquet"
    parquet.write_table(pyarrow.table(table), path)
    assert read_queries(path, run.graph, columns) == QUERIES


@pytest.mark.parametrize(
    ("table", "columns", "message"),
    [
        (
            {"a": ["p0"], "b": ["next"]},
            None,
            ": 2 columns where 3 are expected: 'a, b' (write head, relation and tail as three columns)",
        ),
        (
            {key: ["p0"] for key in "abcd"},
            None,
            ": 4 columns where 3 are expected: 'a, b, c, d' (pick three with --columns, such as a,b,c)",
        ),
        ({key: ["p0"] for key in "abc"}, "a,b,d", "column 'd' is not in the header row"),
        (
            {"a": ["p0", "p77"], "b": ["next"] * 2, "c": [None, "?"]},
            None,
            ":2: unknown entity 'p77'",
        ),
        (
            {"a": ["p0"], "b": ["next"], "c": ["p1"]},
            None,
            "leave out exactly one of head, relation and tail",
        ),
        (
            {"a": [["p0"]], "b": ["next"], "c": ["?"]},
            None,
            ": column 'a' holds no names but list<element: string> (pick columns of text or ids",
        ),
        ({"a": [b"\xff"], "b": ["next"], "c": ["?"]}, None, ": is not readable as Parquet"),
        ({"a": [], "b": [], "c": []}, None, ":1: holds no queries"),
    ],
)
def test_bad_rows_of_parquet_are_told(
    run: Run, tmp_path: Path, table: dict[str, list[object]], columns: str | None, message: str
) -> None:
    path = tmp_path / "queries.parquet"
    parquet.write_table(pyarrow.table(table), path)
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_queries(path, run.graph, columns)
    assert str(caught.value).startswith(str(path))
    assert "header row name" not in str(caught.value)  # its columns have names already


@pytest.mark.parametrize("columns", [None, "1,2,3"])
def test_columns_of_one_name_are_told(run: Run, tmp_path: Path, columns: str | None) -> None:
    path = tmp_path / "facts.parquet"
    names = [pyarrow.array([name]) for name in ("p0", "next", "p1")]
    parquet.write_table(pyarrow.Table.from_arrays(names, ["x", "x", "tail"]), path)
    for read in (read_queries, read_triples):
        with pytest.raises(DataError, match=r"several columns 'x': 'x, x, tail' \(rename"):
            read(path, run.graph, columns)


def test_what_only_ends_in_parquet_or_lacks_its_reader(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "queries.parquet"
    path.write_text(TEXT, "utf-8")
    with pytest.raises(DataError, match="is not readable as Parquet"):
        read_queries(path, run.graph)
    with pytest.raises(DataError, match="cannot be read"):
        read_queries(tmp_path / "missing.parquet", run.graph)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"reading queries\.parquet needs the extra 'tables'"
    ):
        read_queries(path, run.graph)


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (
            b"p0,next,?\np0,next\n",
            None,
            ":2: 2 columns where 3 are expected: 'p0, next' (write head",
        ),
        (b"p0\tnext\t?\n", None, ":1: 1 column where 3 are expected"),
        (b"1,p0,next,?\n", None, ":1: 4 columns where 3 are expected"),
        (
            b"item,property,value\np0,next,?\n",
            None,
            ":1: the query (item, property, value) leaves nothing to find; leave out exactly one of "
            "head, relation and tail (of a header row name the columns with --columns)",
        ),
        (b'p0,next,?\n"p0,next,?\n', None, ":2: the quoting cannot be understood"),
        (b"a,b,c\np0,next,?\n", "a,b,d", ":1: column 'd' is not in the header row"),
        (b"p0,next,?\n", "1,2,4", ":1: column 4 asked for, but there are 3"),
        (b"a,b,c\n", "a,b,c", ":1: holds no queries"),
        (b"n,h,r,t\n1,p0,next,?\np0,next,?\n", "h,r,t", ":3: 3 columns where 4 are expected"),
    ],
)
def test_bad_rows_of_a_csv_are_told_with_their_line(
    run: Run, tmp_path: Path, content: bytes, columns: str | None, message: str
) -> None:
    path = tmp_path / "queries.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        read_queries(path, run.graph, columns)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"p0\tnext\t?\np0\tnext\n", ":2: 2 columns where 3 are expected: 'p0\\tnext' (write head"),
        (b"p0 next ?\n", ":1: 1 column where 3 are expected"),
        (b"p0\tnext\tp1\n", ":1: the query (p0, next, p1) leaves nothing to find"),
        (b"p0\tnext\t?\n\n?\t?\tp1\n", ":3: the query (?, ?, p1) leaves 2 names out"),
        (b"p0\tnexxt\t?\n", ":1: unknown relation 'nexxt'; did you mean 'next'?"),
        (b"p0\tnext\t?\n?\tnext\tp77\n", ":2: unknown entity 'p77'"),
        (b"p0\tnext\t?\n\xff\tnext\t?\n", ":2: byte 0xff is not UTF-8"),
        (b"", ":1: holds no queries"),
        (b"head\trelation\ttail\n", ":1: holds no queries"),
    ],
)
def test_bad_rows_of_queries_are_told_with_their_line(
    run: Run, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "queries.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        read_queries(path, run.graph)


def test_files_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.tsv"):
        with pytest.raises(DataError, match="cannot be read"):
            read_queries(path, run.graph)
        with pytest.raises(DataError, match="cannot be read"):
            read_names(path, run.graph.entities)


def test_facts_to_score_from_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("tail,head,relation\np1,p0,next\nq0,q1,knows\n", "utf-8")
    facts = read_triples(path, run.graph, columns="head,relation,tail")
    assert facts == [("p0", "next", "p1"), ("q1", "knows", "q0")]
    path.write_text("p0,next,p1\nq1,know,q0\n", "utf-8")
    with pytest.raises(
        DataError, match=r"facts.csv:2: unknown relation 'know'; did you mean 'knows'"
    ):
        read_triples(path, run.graph)


def test_names_from_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes(b"\xef\xbb\xbfp1\r\np2\n\n")
    assert read_names(path, run.graph.entities) == ["p1", "p2"]
    path.write_text("p1\np01\n", "utf-8")
    with pytest.raises(DataError, match=r"names.txt:2: unknown entity 'p01'; did you mean 'p0'"):
        read_names(path, run.graph.entities)
    path.write_text("\n", "utf-8")
    with pytest.raises(DataError, match=r"names.txt:1: holds no names"):
        read_names(path, run.graph.entities)
