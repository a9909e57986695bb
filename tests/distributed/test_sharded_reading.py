"""Any number of processes reads the graph that one reads, and tells its mistakes alike."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import torch
from pyarrow import parquet

from golde.data.graph import SPLITS, KnowledgeGraph
from golde.data.loading import load_graph
from golde.distributed.graph import GraphShare
from golde.distributed.reading import load_share
from golde.distributed.world import FailedElsewhereError, World
from golde.errors import GoldeError
from golde.runs import RunFolder
from golde.training.loop import _sample
from golde.training.opening import at_start
from threads import together
from tiny import quick

SIZES = (2, 5)

Fact = tuple[str, str, str]


def some_facts(count: int, seed: int = 0) -> list[Fact]:
    """With repetitions, hubs, loops and names that occur once, of one to three bytes a letter."""
    draw = random.Random(seed)
    names = [f"{letter}{i}" for i in range(count // 3) for letter in "aé語"]
    few = names[:5]

    def end() -> str:
        return draw.choice(few if draw.random() < 0.3 else names)

    facts = [(end(), f"r{draw.randrange(4)}", end()) for _ in range(count)]
    facts += [(f"once{i}", "r0", f"once{i}") for i in range(2)] + facts[:3]
    draw.shuffle(facts)
    return facts


def tsv(facts: list[Fact], end: str = "\n") -> bytes:
    return "".join("\t".join(fact) + end for fact in facts).encode()


def table(path: Path, facts: list[Fact], group: int = 7) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    columns = dict(zip(("head", "relation", "tail"), zip(*facts, strict=True), strict=True))
    parquet.write_table(pyarrow.table(columns), path, row_group_size=group)


def splits(folder: Path) -> Path:
    """A small valid and test beside a train, with what notes are made of."""
    folder.mkdir()
    (folder / "train.tsv").write_bytes(b"\xef\xbb\xbf" + tsv(some_facts(60), "\r\n") + b"\n\n")
    (folder / "valid.tsv").write_bytes(tsv([("a0", "r1", "new"), ("new", "r2", "é1")] * 2))
    (folder / "test.csv").write_text('head,relation,tail\n"a,0",r1,new\nnewer,r0,語0\n')
    return folder


def one(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir()
    (folder / name).write_bytes(content)
    return folder / name


def tables(folder: Path, *names: str) -> Path:
    for i, name in enumerate(names):
        table(folder / name, some_facts(30, seed=i))
    return folder


CSV = b"h,r,t\n" + tsv(some_facts(20)).replace(b"\t", b",")
NT = "".join(f"<x:{h}> <x:{r}> <x:{t}> .\n" for h, r, t in some_facts(20)).encode()

SOURCES: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "splits": (splits, {"columns": None}),
    "one table": (lambda to: one(to, "facts.tsv", tsv(some_facts(90))), {}),
    "no line end": (lambda to: one(to, "facts.txt", tsv(some_facts(9))[:-1]), {"valid": 1}),
    "a lone first row": (lambda to: one(to, "f.tsv", b"Who\tDid\tWhat\n" + tsv(some_facts(9))), {}),
    "commas": (lambda to: one(to, "facts.csv", CSV), {"columns": "h,r,t", "seed": 3}),
    "compressed": (lambda to: one(to, "f.tsv.gz", gzip.compress(tsv(some_facts(20)))), {"test": 2}),
    "statements": (lambda to: one(to, "facts.nt", NT), {}),
    "tables": (lambda to: tables(to, "part-0.parquet", "part-1.parquet", "part-2.parquet"), {}),
    "tables of splits": (
        lambda to: tables(to, "train/0.parquet", "train/1.parquet", "valid/0.parquet"),
        {},
    ),
}


def whole(found: list[GraphShare], split: str) -> torch.Tensor:
    return torch.cat([share.rows[split] for share in found])


def read(source: Path, size: int, **options: Any) -> list[GraphShare]:
    return together(size, lambda world: load_share(source, world, **options))


@pytest.mark.parametrize("name", SOURCES)
def test_the_graph_is_that_of_one_process(name: str, tmp_path: Path) -> None:
    make, options = SOURCES[name]
    source = make(tmp_path / "source")
    if name == "splits":
        (source / "test.csv").write_text('"a,0",r1,new\nnewer,r0,語0\n')
    expected = load_graph(source, **options)
    for size in (*SIZES, *((17,) if name == "no line end" else ())):  # more than it has lines
        found = read(source, size, **options)
        for split in SPLITS:
            assert torch.equal(whole(found, split), expected.split(split)), (size, split)
        names = [name for share in found for name in share.entities.names]
        assert tuple(names) == expected.entities.names
        for share in found:
            assert share.relations.names == expected.relations.names
            assert share.digest == expected.digest
            assert share.notes == expected.notes
            assert share.sizes == (len(expected.entities), len(expected.relations))
            assert share.counts == {split: len(expected.split(split)) for split in SPLITS}


def test_no_process_reads_or_keeps_much_more_than_its_part(tmp_path: Path) -> None:
    """Of facts and of names, also where all names of the others are met."""
    source = one(tmp_path / "source", "facts.tsv", tsv(some_facts(900)))
    graph = load_graph(source)

    def shared(world: World) -> tuple[GraphShare, int]:
        share = load_share(source, world)
        return share, share.facts("train").facts.shape[1]

    for share, asked in together(4, shared):
        assert 200 <= sum(len(rows) for rows in share.rows.values()) <= 250
        assert len(share.entities.ordered) < len(graph.entities) / 2
        assert asked < len(graph.train)  # a quarter of twice as many


def test_a_sample_is_that_of_one_process(tmp_path: Path) -> None:
    source = one(tmp_path / "source", "facts.tsv", tsv(some_facts(90)))
    graph = load_graph(source, valid=20)
    limits = (7, 20, 50)

    def samples(world: World) -> list[torch.Tensor]:
        share = load_share(source, world, valid=20)
        return [share.sample("valid", limit, seed=4) for limit in limits]

    for found in together(3, samples):
        for limit, sample in zip(limits, found, strict=True):
            assert torch.equal(sample, _sample(graph.valid, limit, seed=4))


def test_a_run_folder_holds_the_same_files(tmp_path: Path) -> None:
    source = splits(tmp_path / "source")
    (source / "test.csv").write_text('"a,0",r1,new\nnewer,r0,語0\n')
    graph, config = load_graph(source), quick()
    alone = RunFolder(tmp_path / "alone")
    alone.path.mkdir()
    alone.create(config, graph, {})
    here: dict[str, Any] = {
        **dict.fromkeys(("golde", "torch", "python", "platform", "device"), ""),
        "threads": 1,
    }
    for size in (1, 3):
        folder = RunFolder(tmp_path / f"of {size}")
        folder.path.mkdir()

        def written(world: World, folder: RunFolder = folder) -> GraphShare:
            share = load_share(source, world)
            share.write(folder)
            if world.rank == 0:
                sizes = dict(zip(("entities", "relations"), share.sizes, strict=True))
                about = {"graph": share.name, "digest": share.digest, **sizes, **share.counts}
                folder.create_around_graph(config, about | at_start(here))
            world.collect(torch.zeros(()))
            return GraphShare.stored(folder, world)

        found = together(size, written)
        names = "vocabulary.json"
        assert (folder.path / names).read_bytes() == (alone.path / names).read_bytes()
        stored = folder.graph()
        assert stored.digest == graph.digest
        for split in SPLITS:
            assert torch.equal(stored.split(split), graph.split(split))
            assert torch.equal(whole(found, split), graph.split(split))
        assert all(share.digest == graph.digest for share in found)


GOOD = tsv(some_facts(40))
BAD: dict[str, tuple[str, bytes]] = {
    "a short line": ("f.tsv", GOOD + b"only\ttwo\n" + GOOD),
    "another short line": ("f.tsv", b"\xef\xbb\xbf" + GOOD[:-1] + b"\n\nonly\ttwo\n"),
    "a blank line": ("f.tsv", GOOD + b"\n" + GOOD),
    "blank lines up to the middle": ("f.tsv", GOOD + 4 * b"\n" + GOOD[:-1] + b"more\n"),
    "no UTF-8": ("f.tsv", GOOD + b"a\tb\t\xff\n" + GOOD),
    "a blank name": ("f.tsv", GOOD + b"a\t \tb\n" + GOOD),
    "a header": ("f.tsv", b"head\trelation\ttail\n" + GOOD),
    "four columns": ("f.tsv", b"a\tb\tc\td\n" * 30),
    "nothing": ("f.tsv", b""),
    "only line ends": ("f.tsv", 30 * b"\n"),
    "a short row": ("f.csv", b"a,b,c\nd,e\n"),
    "no table": ("f.parquet", b"PAR1 is not enough"),
    "too many held out": ("f.tsv", b"a\tr\tb\nb\tr\tc\n"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_told_by_one_as_if_it_were_alone(name: str, tmp_path: Path) -> None:
    source = one(tmp_path / "source", *BAD[name])
    options = {"valid": 1, "test": 0}
    with pytest.raises(GoldeError) as alone:
        load_graph(source, **options)
    for size in (2, 5):
        assert told(source, size, **options) == [str(alone.value)], size


def told(source: Path, size: int, **options: Any) -> list[str]:
    """What the processes say that do not leave it to another."""

    def failure(world: World) -> list[str]:
        with pytest.raises(GoldeError) as caught, world.all_or_none():
            load_share(source, world, **options)
        elsewhere = isinstance(caught.value, FailedElsewhereError)
        return [] if elsewhere else [str(caught.value)]

    return [words for told in together(size, failure) for words in told]


def test_a_relation_that_train_lacks_is_told_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "train.tsv").write_bytes(GOOD)
    (folder / "valid.tsv").write_bytes(GOOD + b"a0\tnever\ta1\na1\tnever\ta0\n" + GOOD)
    with pytest.raises(GoldeError, match=r"valid.tsv:\d+: the relation.*2 such rows") as alone:
        load_graph(folder)
    for size in (2, 5):
        assert told(folder, size) == [str(alone.value)]


def test_processes_that_see_other_files_say_so(tmp_path: Path) -> None:
    for rank in range(2):
        one(tmp_path / str(rank), "facts.tsv", GOOD + b"a\tr\tb\n" * rank)

    def work(world: World) -> None:
        load_share(tmp_path / str(world.rank) / "facts.tsv", world)

    with pytest.raises(GoldeError, match="process 1 has another list of files"):
        together(2, work)


def test_the_shipped_graph_is_shared_out_too() -> None:
    found = together(3, lambda world: load_share("world", world))
    graph: KnowledgeGraph = load_graph("world")
    assert {share.digest for share in found} == {graph.digest}
    assert torch.equal(whole(found, "train"), graph.train)
