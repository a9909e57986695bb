"""One door for every source of facts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from golde.data import catalogue
from golde.data.columns import Columns
from golde.data.files import read_error, suffix_of
from golde.data.graph import SPLITS, KnowledgeGraph, drop_duplicates
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

    ``source`` is the name of a set, a folder with one file each for train, valid and test, or a
    single file, of which ``valid`` and ``test`` (fractions, or counts) are then held out, drawn by
    ``seed``. ``columns`` says which columns hold head, relation and tail: names from a header
    row such as "subject,predicate,object", or positions such as "1,3,2".
    """
    wanted = None if columns is None else Columns.parse(columns)
    path, notes = Path(source), []
    if isinstance(source, str) and (named := _named(source)) is not None:
        if named == "world":
            return load_world()
        if path.exists():
            notes.append(f"{named} is the set of that name; for the one here say ./{source}")
        path = catalogue.resolve(named, data_dir, progress=progress)
    try:
        if path.is_file():
            return _load_file(path, wanted, valid, test, seed, progress)
        return _load_folder(path, wanted, progress, notes)
    except OSError as error:
        raise read_error(path, error) from error


def _named(source: str) -> str | None:
    """The set a source names, or None if it is a path."""
    path = Path(source)
    if source == "world":
        return source
    if path.name != source or suffix_of(path) in READERS:
        return None
    try:
        return catalogue.find(source).name
    except GoldeError as error:
        if path.exists():
            return None
        raise GoldeError(f"{source!r} is no file or folder, and {error}") from None


def _load_folder(
    folder: Path, columns: Columns | None, progress: Progress, notes: list[str]
) -> KnowledgeGraph:
    found = {split: parts for split in SPLITS if (parts := _parts(folder, split))}
    if "train" not in found:
        there = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
        raise DataError(
            folder,
            f"no train file; the folder holds {there}",
            fix=f"name it train plus one of {', '.join(READERS)}, and valid and test likewise",
        )
    reading = _Reading(columns, [part for parts in found.values() for part in parts], progress)
    graph_name = Path(os.path.abspath(folder)).name  # of "." and ".." too; a link keeps its own
    splits, duplicates = {}, 0
    for split in SPLITS:
        if split not in found:
            notes.append(f"{graph_name}: no {split} file, so that split is empty")
            continue
        files = [reading.read(part) for part in found[split]]
        name = found[split][0].name if len(files) == 1 else split
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
    return KnowledgeGraph.from_ids(reading.index, splits, graph_name, notes, duplicates)


def _load_file(
    path: Path,
    columns: Columns | None,
    valid: float | int,
    test: float | int,
    seed: int,
    progress: Progress,
) -> KnowledgeGraph:
    reading = _Reading(columns, [path], progress)
    file = reading.read(path)
    rows, dropped = drop_duplicates(file.triples)
    splits, notes = split_facts(rows, valid=valid, test=test, seed=seed)
    notes = [
        *file.notes,
        *note(path.name, dropped, "duplicate row", "dropped"),
        *(f"{path.name}: {line}" for line in notes),
    ]
    name = path.name.partition(".")[0] or path.name
    return KnowledgeGraph.from_ids(reading.index, splits, name, notes, dropped)


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
            fix = f"move facts of that relation to train, or remove them ({new.sum()} such rows)"
            problem = "the relation of this fact does not occur in train"
            raise fact_error(file, int(new.argmax()), self.index, problem, fix)

    def unseen(self, name: str, rows: Ids) -> list[str]:
        new = rows[:, [0, 2]] >= self._trained[0]
        count = len(np.unique(rows[:, [0, 2]][new]))
        facts = int(new.any(axis=1).sum())
        things = "entity" if count == 1 else "entities"
        where = f"(in {facts} fact{'s' * (facts != 1)})"
        return [f"{name}: {count} {things} not in train {where}"] if count else []


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
