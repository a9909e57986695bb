"""One door for every source of facts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from golde.data import catalogue
from golde.data.columns import Columns
from golde.data.files import read_error, suffix_of
from golde.data.graph import SPLITS, KnowledgeGraph, drop_duplicates
from golde.data.lookalikes import look_alikes
from golde.data.notes import note
from golde.data.numbering import FileFacts, Ids, NameIndex
from golde.data.readers import READERS, fact_error, read_facts
from golde.data.splitting import split_facts
from golde.data.world import load_world
from golde.errors import DataError, GoldeError
from golde.progress import Progress, silent


def load_graph(
    source: str | Path,
    *,
    data_dir: str | Path | None = None,
    columns: str | None = None,
    valid: float | int = 0.1,
    test: float | int = 0.1,
    seed: int = 0,
    progress: Progress = silent,
) -> KnowledgeGraph:
    """Read a graph.

    ``source`` is the name of a set, a folder with one file each for train, valid and test (or a folder of
    Parquet files each), or a single file or folder of Parquet files, of which ``valid`` and ``test``
    (fractions, or counts) are then held out, drawn by ``seed``. ``columns`` says which columns hold head,
    relation and tail: names from a header row such as "subject,predicate,object", or positions such as
    "1,3,2".
    """
    wanted = None if columns is None else Columns.parse(columns)
    if source == catalogue.SHIPPED:
        return load_world()
    found = locate(source, data_dir, progress)
    try:
        if found.whole:
            return _load_whole(found, wanted, valid, test, seed, progress)
        return _load_splits(found, wanted, progress)
    except OSError as error:
        raise read_error(found.place, error) from error


@dataclass(frozen=True)
class Source:
    """Where the facts of a graph are."""

    name: str
    place: Path
    splits: dict[str, list[Path]]
    whole: list[Path]
    """Files whose facts are held out from, where there are no splits."""
    notes: list[str]

    @property
    def files(self) -> list[Path]:
        """All of them, in the order in which their names are numbered."""
        return self.whole or [path for split in SPLITS for path in self.splits.get(split, [])]

    def called(self, split: str) -> str:
        """What notes call the files of a split."""
        files = self.splits[split]
        return files[0].name if len(files) == 1 else split

    @property
    def whole_called(self) -> str:
        """What notes call the files that are held out from."""
        return self.whole[0].name if len(self.whole) == 1 else self.name


def locate(source: str | Path, data_dir: str | Path | None, progress: Progress) -> Source:
    """The files of a source that is no graph of the package; a named set is downloaded if need be."""
    path, notes = Path(source), list[str]()
    if isinstance(source, str) and (named := _named(source)) is not None:
        if path.exists():
            notes.append(f"{named} is the set of that name; for the one here say ./{source}")
        path = catalogue.resolve(named, data_dir, progress=progress)
    if path.is_file():
        return Source(path.name.partition(".")[0] or path.name, path, {}, [path], notes)
    name = Path(os.path.abspath(path)).name  # of "." and ".." too; a link keeps its own
    try:
        splits = {split: parts for split in SPLITS if (parts := _parts(path, split))}
        if "train" in splits:
            notes += [
                f"{name}: no {split} file, so that split is empty"
                for split in SPLITS
                if split not in splits
            ]
            return Source(name, path, splits, [], notes)
        if not splits and (tables := _tables(path)):
            notes.append(f"{name}: {len(tables)} Parquet files read as one table")
            return Source(name, path, {}, tables, notes)
        there = ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"
    except OSError as error:
        raise read_error(path, error) from error
    raise DataError(
        path,
        f"no train file; the folder holds {there}",
        fix=f"name it train plus one of {', '.join(READERS)}, and valid and test likewise",
    )


def _named(source: str) -> str | None:
    """The set a source names, or None if it is a path."""
    path = Path(source)
    if path.name != source or suffix_of(path) in READERS:
        return None
    try:
        return catalogue.find(source).name
    except GoldeError as error:
        if path.exists():
            return None
        raise GoldeError(f"{source!r} is no file or folder, and {error}") from None


def _load_splits(found: Source, columns: Columns | None, progress: Progress) -> KnowledgeGraph:
    reading = _Reading(columns, found.files, progress)
    notes, splits, duplicates = list(found.notes), {}, 0
    for split in SPLITS:
        if split not in found.splits:
            continue
        files = [reading.read(part) for part in found.splits[split]]
        name = found.called(split)
        notes += [line for file in files for line in file.notes]
        if split == "train":
            reading.end_train()
        for file in files:
            reading.check_relations(file)
        rows, dropped = drop_duplicates(np.concatenate([file.triples for file in files]))
        notes += note(name, dropped, "duplicate row", "dropped")
        notes += reading.unseen(name, rows)
        splits[split] = rows
        duplicates += dropped
    notes += reading.look_alikes(found.name)
    return KnowledgeGraph.from_ids(reading.index, splits, found.name, notes, duplicates)


def _load_whole(
    found: Source,
    columns: Columns | None,
    valid: float | int,
    test: float | int,
    seed: int,
    progress: Progress,
) -> KnowledgeGraph:
    reading, name = _Reading(columns, found.whole, progress), found.whole_called
    files = [reading.read(path) for path in found.whole]
    rows, dropped = drop_duplicates(np.concatenate([file.triples for file in files]))
    splits, notes = split_facts(rows, valid=valid, test=test, seed=seed)
    notes = [
        *found.notes,
        *(line for file in files for line in file.notes),
        *note(name, dropped, "duplicate row", "dropped"),
        *(f"{name}: {line}" for line in notes),
        *reading.look_alikes(name),
    ]
    return KnowledgeGraph.from_ids(reading.index, splits, found.name, notes, dropped)


class _Reading:
    """Reads the files of one graph one after the other."""

    def __init__(self, columns: Columns | None, files: list[Path], progress: Progress) -> None:
        self.index = NameIndex()
        self._columns = columns
        self._progress = progress
        self._done, self._total = 0, sum(path.stat().st_size for path in files)
        self._trained = 0, 0

    def read(self, path: Path) -> FileFacts:
        before = self._done

        def report(done: int) -> None:
            self._done = before + done
            self._progress(self._done, self._total)

        return read_facts(path, self._columns, self.index, report)

    def end_train(self) -> None:
        """Remember which names train shows."""
        self._trained = len(self.index.entities), len(self.index.relations)

    def check_relations(self, file: FileFacts) -> None:
        """Raise where a relation occurs that train never shows: no model could learn it."""
        new = file.triples[:, 1] >= self._trained[1]
        if new.any():
            raise new_relation(file, int(new.argmax()), self.index, int(new.sum()))

    def look_alikes(self, name: str) -> list[str]:
        index = self.index
        found = (index.entities, "entities"), (index.relations, "relations")
        return [
            f"{name}: {line}" for one, thing in found for line in look_alikes(one.names(), thing)
        ]

    def unseen(self, name: str, rows: Ids) -> list[str]:
        new = rows[:, [0, 2]] >= self._trained[0]
        return unseen_note(name, len(np.unique(rows[:, [0, 2]][new])), int(new.any(axis=1).sum()))


def new_relation(file: FileFacts, row: int, index: NameIndex, rows: int) -> DataError:
    """The error of a fact, the first of so many, whose relation train never shows."""
    fix = f"move facts of that relation to train, or remove them ({rows} such rows)"
    return fact_error(file, row, index, "the relation of this fact does not occur in train", fix)


def unseen_note(name: str, entities: int, facts: int) -> list[str]:
    """That a split has entities which train never shows, if it has."""
    things = "entity" if entities == 1 else "entities"
    where = f"(in {facts} fact{'s' * (facts != 1)})"
    return [f"{name}: {entities} {things} not in train {where}"] if entities else []


def _parts(folder: Path, split: str) -> list[Path]:
    """The file of a split, or the parts of a folder of Parquet files."""
    found = [
        entry
        for entry in sorted(folder.iterdir())
        if entry.name.partition(".")[0] == split
        and (suffix_of(entry) in READERS or (entry.name == split and _in_parts(entry)))
    ]
    if len(found) > 1:
        raise DataError(
            folder,
            f"more than one {split} file",
            text=", ".join(entry.name for entry in found),
            fix="keep one of them",
        )
    return [part for entry in found for part in _in_parts(entry) or [entry]]


def _in_parts(path: Path) -> list[Path]:
    return sorted(path.glob("*.parquet"))


def _tables(folder: Path) -> list[Path]:
    """The files of a folder that holds parts of one Parquet table and nothing else."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "_")))
    split = ("train", "valid", "test", "dev")
    apart = any(
        entry.suffix != ".parquet" or entry.is_dir() or entry.name.startswith(split)
        for entry in entries
    )
    return [] if apart else entries
