"""Every format in, and every kind of bad input told with its place and its remedy."""

from __future__ import annotations

import gzip
import lzma
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from golde.data import text as text_module
from golde.data.graph import KnowledgeGraph
from golde.data.loading import load_graph
from golde.errors import DataError, GoldeError, MissingExtraError

FACTS = [
    ("Ann", "knows", "Bob"),
    ("Bob", "knows", "Čeněk\u00a0"),  # a no-break space belongs to the name
    ("Čeněk\u00a0", "likes", "Ann"),
    ("Ann", "likes", "x\u0085y"),  # a sign some take for a line end does, too
]
TSV = "".join("\t".join(fact) + "\n" for fact in FACTS)
BASE = "http://example.org/"


def zstd(content: bytes) -> bytes:
    """A zstd frame that tells its end, as a file has it."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def write(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def whole(path: Path, columns: str | None = None) -> KnowledgeGraph:
    """A file with nothing held out."""
    return load_graph(path, columns=columns, valid=0, test=0)


def named(graph: KnowledgeGraph, split: str = "train") -> list[tuple[str, str, str]]:
    entities, relations = graph.entities, graph.relations
    return [(entities[h], relations[r], entities[t]) for h, r, t in graph.split(split).tolist()]


# Formats


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd)],
)
@pytest.mark.parametrize("kind", [".tsv", ".txt", ".csv", ".nt", ".ttl"])
def test_text_formats_plain_and_compressed(
    tmp_path: Path, kind: str, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    facts = FACTS
    if kind in (".nt", ".ttl"):
        facts = [(BASE + h, BASE + r, BASE + t) for h, r, t in [("a", "p", "b"), ("b", "q", "a")]]
        text = "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in facts)
    else:
        text = TSV.replace("\t", ",") if kind == ".csv" else TSV
    graph = whole(write(tmp_path / f"facts{kind}{suffix}", compress(text.encode())))
    assert named(graph) == facts
    assert graph.name == "facts"
    assert graph.notes == ()


@pytest.mark.parametrize("block", [1, 7, 30])
def test_lines_longer_than_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(text_module, "_BLOCK", block)
    monkeypatch.setattr(text_module, "_ROWS", 2)
    assert named(whole(write(tmp_path / "a.tsv", TSV + "\n\n"))) == FACTS
    assert named(whole(write(tmp_path / "a.csv", TSV.replace("\t", ",").rstrip()))) == FACTS
    with pytest.raises(DataError, match=r"a\.tsv:5: a blank line between facts"):
        whole(write(tmp_path / "a.tsv", TSV + "\n\na\tr\tb\n"))


def test_quotes_belong_to_names_in_tsv_and_guard_them_in_csv(tmp_path: Path) -> None:
    quoted = '"A, B",r,"say ""hi"""\nc,r,d\n'
    assert named(whole(write(tmp_path / "a.csv", quoted)))[0] == ("A, B", "r", 'say "hi"')
    assert named(whole(write(tmp_path / "a.tsv", '"A\tr\tB"\n'))) == [('"A', "r", 'B"')]


@pytest.mark.parametrize("columns", ["object,kind,subject", "3,1,2"])
def test_columns_by_name_and_by_position(tmp_path: Path, columns: str) -> None:
    rows = "p,b,a,remark\nq,c,b,\n"
    header = "" if columns[0].isdigit() else "kind,subject,object,note\n"
    graph = whole(write(tmp_path / "a.csv", header + rows), columns)
    assert named(graph) == [("a", "p", "b"), ("b", "q", "c")]


def test_a_quoted_line_break_outside_the_names_keeps_line_numbers_right(tmp_path: Path) -> None:
    rows = 'a,r,b,"two\nlines"\nb,r,c,\nc, ,d,\n'
    path = write(tmp_path / "a.csv", rows)
    with pytest.raises(DataError, match=r"a\.csv:4: relation name is empty"):
        whole(path, "1,2,3")


def parquet_file(path: Path, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_by_known_names_by_order_and_by_choice(tmp_path: Path) -> None:
    a, r, b = ["a", "b"], ["r", "r"], ["b", "c"]
    expected = [("a", "r", "b"), ("b", "r", "c")]
    assert (
        named(whole(parquet_file(tmp_path / "1.parquet", object=b, predicate=r, subject=a)))
        == expected
    )
    assert named(whole(parquet_file(tmp_path / "2.parquet", x=a, y=r, z=b))) == expected
    four = parquet_file(tmp_path / "4.parquet", w=[1, 2], x=a, y=r, z=b)
    assert named(whole(four, "x,y,z")) == expected
    assert named(whole(four, "2,3,1")) == [("a", "r", "1"), ("b", "r", "2")]
    with pytest.raises(DataError, match=r"4 columns where 3 are expected.*--columns"):
        whole(four)


def test_a_folder_of_parquet_parts_a_split(tmp_path: Path) -> None:
    parquet_file(tmp_path / "train" / "part-1.parquet", head=["b"], relation=["r"], tail=["c"])
    parquet_file(tmp_path / "train" / "part-0.parquet", head=["a"], relation=["r"], tail=["b"])
    parquet_file(tmp_path / "test.parquet" / "part-0.parquet", h=["c"], r=["r"], t=["a"])
    graph = load_graph(tmp_path)
    assert named(graph) == [("a", "r", "b"), ("b", "r", "c")]
    assert named(graph, "test") == [("c", "r", "a")]
    (tmp_path / "valid").mkdir()  # a folder that only happens to be called so
    assert load_graph(tmp_path).digest == graph.digest


def test_a_folder_of_nothing_but_parquet_is_one_table(tmp_path: Path) -> None:
    """Facts are held out of it; what may be a split is not taken for a part."""
    facts = [(f"e{i}", "r", f"e{(i + 1) % 9}") for i in range(9)]
    for part in range(3):
        heads, relations, tails = (list(column) for column in zip(*facts[part::3], strict=True))
        place = tmp_path / "facts" / f"part-{part}.parquet"
        parquet_file(place, head=heads, relation=relations, tail=tails)
    (tmp_path / "facts" / "_SUCCESS").touch()  # as other programs leave it
    graph = load_graph(tmp_path / "facts", valid=0, test=0)
    assert named(graph) == [*facts[0::3], *facts[1::3], *facts[2::3]]
    assert graph.notes == ("facts: 3 Parquet files read as one table",)
    assert len(load_graph(tmp_path / "facts", valid=2, test=1).valid) == 2
    parquet_file(tmp_path / "facts" / "testing.parquet", head=["a"], relation=["r"], tail=["b"])
    with pytest.raises(DataError, match="no train file"):
        load_graph(tmp_path / "facts")


def test_turtle_drops_literals_and_names_blank_nodes_alike_each_time(tmp_path: Path) -> None:
    text = f"""@prefix ex: <{BASE}> .
    ex:a ex:p ex:b, "a literal", 5 ; ex:q [ ex:p _:label ] .
    """
    path = write(tmp_path / "a.ttl", text)
    graph = whole(path)
    assert set(graph.entities) == {BASE + "a", BASE + "b", "_:a.ttl#1", "_:label"}
    assert graph.notes == ("a.ttl: 2 literals dropped",)
    assert whole(path).digest == graph.digest


# Folders and single files


def test_a_folder_numbers_train_then_valid_then_test(tmp_path: Path) -> None:
    write(tmp_path / "test.txt", "d\tr\ta\n")
    write(tmp_path / "train.csv", "a,r,b\n")
    write(tmp_path / "valid.tsv.gz", gzip.compress(b"c\tr\tb\nb\tr\tc\n"))
    write(tmp_path / "entities.txt", "whatever else is there")
    done: list[tuple[int, int]] = []
    graph = load_graph(tmp_path, progress=lambda at, total: done.append((at, total)))
    assert graph.entities.names == ("a", "b", "c", "d")
    assert [len(graph.split(split)) for split in ("train", "valid", "test")] == [1, 2, 1]
    assert graph.notes == (
        "valid.tsv.gz: 1 entity not in train (in 2 facts)",
        "test.txt: 1 entity not in train (in 1 fact)",
    )
    assert done == sorted(done)
    assert done[-1][0] == done[-1][1]


def test_a_single_file_is_split_on_the_spot(tmp_path: Path) -> None:
    rows = [(f"e{i % 20}", f"r{i % 3}", f"e{i * 7 % 20}") for i in range(200)]
    path = write(tmp_path / "g.tsv", "".join("\t".join(row) + "\n" for row in rows))
    graph = load_graph(path, valid=5, test=0.1, seed=1)
    facts = len(set(rows))
    assert (len(graph.valid), len(graph.test)) == (5, round(0.1 * facts))
    assert graph.notes == (f"g.tsv: {200 - facts} duplicate rows dropped",)
    assert graph.digest == load_graph(path, valid=5, test=0.1, seed=1).digest
    assert graph.digest != load_graph(path, valid=5, test=0.1, seed=2).digest


def test_harmless_things_are_counted(tmp_path: Path) -> None:
    text = "a\tr\tb\r\nb\tr\tc\r\na\tr\tb\n\r\n\n"
    graph = whole(write(tmp_path / "a.tsv", b"\xef\xbb\xbf" + text.encode()))
    assert named(graph) == [("a", "r", "b"), ("b", "r", "c")]
    assert graph.notes == (
        "a.tsv: 1 byte-order mark skipped",
        "a.tsv: 3 lines ended in CR LF",
        "a.tsv: 2 blank lines at the end skipped",
        "a.tsv: 1 duplicate row dropped",
    )


def test_line_ends_of_csv_files_are_not_worth_a_word(tmp_path: Path) -> None:
    """Every spreadsheet and Python's own writer end lines so."""
    graph = whole(write(tmp_path / "a.csv", "a,r,b\r\nb,r,c\r\n"))
    assert named(graph) == [("a", "r", "b"), ("b", "r", "c")]
    assert graph.notes == ()


HEADED = "item,property,value\na,r,b\nb,r,c\n"


def test_a_header_taken_for_a_fact_is_noted_with_the_fix(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", HEADED)
    (note,) = whole(path).notes
    words = "a.csv: line 1 holds names that occur nowhere else (item, property, value)"
    assert note == f"{words}; if it is a header row, give --columns item,property,value"
    told = load_graph(path, valid=0, test=0, columns="item,property,value")
    assert (named(told), told.notes) == ([("a", "r", "b"), ("b", "r", "c")], ())
    wide = write(tmp_path / "b.csv", "id,value,item,property\n1,b,a,r\n2,c,b,r\n")
    (note,) = load_graph(wide, valid=0, test=0, columns="3,4,2").notes
    assert "give --columns item,property,value" in note


@pytest.mark.parametrize(
    "text", ["a\tr\tb\nc\tr\td\n", "a\ts\tb\nb\tr\tc\n", "a\ts\tb\nc\tr\ta\n", "a\tr\tb\n"]
)
def test_a_first_fact_that_shares_a_name_or_is_alone_is_a_fact(text: str, tmp_path: Path) -> None:
    assert whole(write(tmp_path / "a.tsv", text)).notes == ()


def test_names_known_from_train_are_no_header_of_the_others(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "a\tr\tb\nb\ts\tc\nc\tr\ta\n")
    write(tmp_path / "valid.tsv", "a\ts\tc\nb\tr\tb\n")
    write(tmp_path / "test.tsv", "c\ts\tb\n")
    assert load_graph(tmp_path).notes == ()


def test_too_many_columns_are_shown_with_names_to_pick(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,value,source,item\n1,b,c,d\n")
    with pytest.raises(DataError, match="'id, value, source, item'") as caught:
        whole(path)
    assert "--columns, such as id,value,source if this is a header row" in str(caught.value)
    path = write(tmp_path / "b.csv", "id,tail,head,relation\n1,b,c,d\n")
    with pytest.raises(DataError, match="such as head,relation,tail if this is a header row"):
        whole(path)


# Bad input

ROW = "a\tr\tb\n"

BAD = {
    "too few columns": ("a.tsv", ROW + "a\tr\n", ":2: 2 columns where 3 are expected: 'a, r'"),
    "too many columns": ("a.tsv", ROW + ROW + "a\tr\tb\tc\n", ":3: 4 columns .*same columns"),
    "four columns": ("a.tsv", "a\tr\tb\tc\n", r":1: 4 columns .*\(pick three with --columns"),
    "tabs missing": ("a.txt", "a r b\n", r":1: 1 column .*'a r b' \(separate .* by a tab in"),
    "columns even out": ("a.tsv", ROW + "a\tr\tb\tc\nd\te\n", ":2: 4 columns where 3"),
    "csv columns": ("a.csv", "a,r,b\na,r\n", ":2: 2 columns where 3"),
    "blank line": ("a.tsv", ROW + "\n" + ROW, r":2: a blank line between facts.*\(remove it"),
    "blank csv line": ("a.csv", "a,r,b\n\na,r,b\n", ":2: a blank line between facts"),
    "empty name": ("a.tsv", ROW + "a\t\tb\n", r":2: relation name is empty: 'a.*\(give every"),
    "name of spaces": ("a.tsv", ROW + "a\tr\t \n", ":2: entity name is empty"),
    "line break in name": ("a.csv", 'a,r,b\na,r,"b\nc"\n', ":2: entity name holds a tab or line"),
    "open quote": ("a.csv", 'a,r,b\na,r,"b\n', ":2: the quoting .*'a,r,\"b'.*close every"),
    "undecodable": (
        "a.tsv",
        ROW.encode() + b"a\tr\t\xe9t\xe9\n",
        r":2: byte 0xe9 .*\(save .*UTF-8",
    ),
    "utf-16": ("a.tsv", ROW.encode("utf-16"), ":1: byte 0xff is not UTF-8"),
    "header": ("a.tsv", "Subject\tPredicate\tObject\n" + ROW, ":1: .*header row.*--columns Subj"),
    "mixed header": ("a.csv", "from,to,type\na,b,r\n", ":1: .*header row.*--columns from,type,to"),
    "empty": ("a.tsv", "", r":1: holds no facts \(one fact a line"),
    "only blank lines": ("a.tsv", "\n\n", ":1: holds no facts"),
    "cut gz": ("a.tsv.gz", gzip.compress(ROW.encode())[:-9], r":2: truncated or damaged.*again"),
    "cut xz": ("a.tsv.xz", lzma.compress(ROW.encode())[:-9], r":\d: truncated or damaged"),
    "cut zst": ("a.tsv.zst", zstd(ROW.encode())[:-2], r":\d: truncated or damaged"),
    "not gz": ("a.tsv.gz", ROW, ":1: truncated or damaged"),
    "not xz": ("a.tsv.xz", ROW, ":1: truncated or damaged"),
    "not zst": ("a.tsv.zst", ROW, ":1: truncated or damaged"),
    "cut rdf": ("a.nt.gz", gzip.compress(b"<x:a> <x:r> <x:b> .\n")[:-9], ": truncated or damaged"),
    "not parquet": ("a.parquet", "PAR1 is not enough", ": is not readable as Parquet .*again"),
    "bad n-triples": ("a.nt", "<x:a> <x:r> <x:b> .\n<x:a> <x:r .\n", ":2: is not N-T.*<x:r .*corr"),
    "bad turtle": (
        "a.ttl",
        "<x:a> <x:r> <x:b> .\n\nex:a ex:b ex:c .",
        ":3: is not Turtle .*prefix",
    ),
    "only literals": ("a.nt", '<x:a> <x:r> "b" .\n', ":1: holds no facts"),
    "unknown kind": ("a.json", "{}", r": unknown kind of file \(use one of .tsv, .txt, .csv"),
}


@pytest.mark.parametrize(("name", "data", "message"), BAD.values(), ids=BAD)
def test_bad_files(tmp_path: Path, name: str, data: str | bytes, message: str) -> None:
    path = write(tmp_path / name, data)
    with pytest.raises(DataError, match=re.escape(str(path)) + message):
        load_graph(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("a,r", "name three different ones"),
        ("a,r,a", "name three different ones"),
        ("0,1,2", "positions count from 1"),
        ("1,2,4", r"a\.csv:1: column 4 asked for, but there are 3: 'x, y, y'"),
        ("x,z,y", r"a\.csv:1: column 'z' is not in the header row: 'x, y, y'"),
        ("x,y,w", r"a\.csv:1: column 'y' occurs twice in the header row"),
    ],
)
def test_bad_columns(tmp_path: Path, columns: str, message: str) -> None:
    with pytest.raises(GoldeError, match=message):
        load_graph(write(tmp_path / "a.csv", "x,y,y\n"), columns=columns)


def test_a_header_can_be_claimed_a_fact(tmp_path: Path) -> None:
    graph = whole(write(tmp_path / "a.tsv", "h\tr\tt\n"), "1,2,3")
    assert named(graph) == [("h", "r", "t")]
    assert graph.notes == ("a.tsv: line 1 looks like a header row and is read as a fact",)


def test_no_columns_for_rdf(tmp_path: Path) -> None:
    with pytest.raises(GoldeError, match="omit --columns"):
        load_graph(write(tmp_path / "a.nt", "<x:a> <x:r> <x:b> .\n"), columns="1,2,3")


def test_a_null_in_parquet(tmp_path: Path) -> None:
    path = parquet_file(tmp_path / "a.parquet", h=["a", "b"], r=["r", None], t=["b", "c"])
    with pytest.raises(DataError, match=r"a\.parquet:2: no name \(null\)"):
        load_graph(path)


@pytest.mark.parametrize(
    ("kind", "train", "test"),
    [
        (".tsv", ROW, ROW + "b\tnew\ta\nb\tnew\tb\n"),
        (
            ".nt",
            "<x:a> <x:r> <x:b> .\n",
            "# remark\n<x:b> <x:new> <x:a> .\n<x:a> <x:new> <x:b> .\n",
        ),
        (".ttl", "<x:a> <x:r> <x:b> .\n", "@prefix x: <x:> .\nx:b x:new x:a, x:b .\n"),
    ],
)
def test_a_relation_that_train_never_shows(
    tmp_path: Path, kind: str, train: str, test: str
) -> None:
    write(tmp_path / f"train{kind}", train)
    path = write(tmp_path / f"test{kind}", test)
    expected = (
        re.escape(str(path)) + r":2: the relation .* not occur in train: .*new.*\(2 such rows\)"
    )
    with pytest.raises(DataError, match=expected):
        load_graph(tmp_path)


def test_folders_that_are_not_as_they_should(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no train file; the folder holds nothing \(name it train"):
        load_graph(tmp_path)
    write(tmp_path / "train.tsv", ROW)
    assert load_graph(tmp_path).notes == (
        f"{tmp_path.name}: no valid file, so that split is empty",
        f"{tmp_path.name}: no test file, so that split is empty",
    )
    write(tmp_path / "train.tsv.gz", "")
    with pytest.raises(DataError, match=r"more than one train file: 'train.tsv, train.tsv.gz'"):
        load_graph(tmp_path)


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").mkdir()
    with pytest.raises(DataError, match=r"train\.tsv: is a folder where a file should be"):
        load_graph(tmp_path)
    (tmp_path / "other" / "train.parquet").mkdir(parents=True)
    with pytest.raises(DataError, match=r"train\.parquet: is a folder where a file should be"):
        load_graph(tmp_path / "other")


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"no\.tsv: cannot be read: No such file"):
        load_graph(tmp_path / "no.tsv")
    path = write(tmp_path / "a.tsv", ROW)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("golde.data.files._Watched.__init__", refuse)
    with pytest.raises(DataError, match=r"a\.tsv: cannot be read: Permission denied \(check"):
        load_graph(path)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("a.tsv.zst", "pyarrow", "tables"),
        ("a.parquet", "pyarrow", "tables"),
        ("a.nt", "pyoxigraph", "rdf"),
    ],
)
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'golde\[{extra}\]'"):
        load_graph(write(tmp_path / name, ROW))


def test_names_of_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("train", "valid", "test"):
        write(tmp_path / "data" / "umls" / f"{split}.tsv", ROW)
        write(tmp_path / "umls" / f"{split}.tsv", ROW + ROW)
    graph = load_graph("umls", data_dir="data")
    assert (graph.name, graph.duplicates) == ("umls", 0)
    assert graph.notes == ("umls is the set of that name; for the one here say ./umls",)
    assert load_graph("UMLS", data_dir="data").digest == graph.digest
    assert load_graph("./umls").duplicates == load_graph(Path("umls")).duplicates == 3
    assert load_graph("world").name == "world"
    with pytest.raises(GoldeError, match=r"'umsl' is no file or folder, and .*mean umls"):
        load_graph("umsl")


def test_a_graph_has_a_name_wherever_it_is_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.tsv").write_text("a\tr\tb\n")
    (tmp_path / "...tsv").write_text("a\tr\tb\n")
    (tmp_path / "within").mkdir()
    monkeypatch.chdir(tmp_path)
    for source in (".", "within/..", tmp_path):
        assert load_graph(source).name == tmp_path.name
    assert load_graph("./...tsv").name == "...tsv"
