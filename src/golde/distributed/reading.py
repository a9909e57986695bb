"""Reading a graph of which no process has all: each reads its part of the files.

What comes out is the graph that ``golde.data.loading.load_graph`` reads, its names numbered alike and its
facts in the same order, the first of them with the first process.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from golde.data.catalogue import SHIPPED
from golde.data.columns import Columns, wrong_width
from golde.data.files import Report, suffix_of
from golde.data.graph import SPLITS
from golde.data.loading import Source, locate, new_relation, unseen_note
from golde.data.notes import note
from golde.data.numbering import FileFacts, NameIndex, Tally
from golde.data.parts import Part, parts_of
from golde.data.readers import no_facts_in, read_part
from golde.data.text import lines_before, lone_row_note
from golde.data.vocabulary import Vocabulary
from golde.data.world import load_world
from golde.distributed.graph import GraphShare
from golde.distributed.holding_out import hold_out
from golde.distributed.launch import refuse_differences
from golde.distributed.names import deliver_texts, merge_names, number_names
from golde.distributed.world import World
from golde.progress import Progress, silent


def load_share(
    source: str | Path,
    world: World,
    *,
    data_dir: str | Path | None = None,
    columns: str | None = None,
    valid: float | int = 0.1,
    test: float | int = 0.1,
    seed: int = 0,
    progress: Progress = silent,
) -> GraphShare:
    """This process's share of the graph that ``load_graph`` would read with the same arguments."""
    if source == SHIPPED:
        return GraphShare.of(load_world(), world)
    with world.all_or_none():
        wanted = None if columns is None else Columns.parse(columns)
        if world.rank == 0:  # a set that has to be fetched is fetched once
            found = locate(source, data_dir, progress)
    with world.all_or_none():
        if world.rank:
            found = locate(source, data_dir, silent)
        sizes = [f"{path.name} {path.stat().st_size}" for path in found.files]
    refuse_differences(world, {"list of files or their sizes": "\n".join(sizes)})
    with world.all_or_none():
        reading = _Reading(found, wanted, world, progress)
    return reading.graph(valid, test, seed)


class _Reading:
    """The parts that this process reads, and what all find out about them together."""

    def __init__(
        self, found: Source, columns: Columns | None, world: World, progress: Progress
    ) -> None:
        self.found, self.world, self.index = found, world, NameIndex()
        self.files: list[tuple[Part, FileFacts]] = []
        parts = parts_of(found.files, world.rank, world.size)
        for i, part in enumerate(parts):
            report = _report(part, i, len(parts), progress)
            self.files.append((part, read_part(part, columns, self.index, report)))

    def graph(self, valid: float | int, test: float | int, seed: int) -> GraphShare:
        """The share of this process, with the notes of all."""
        world = self.world
        relations = Vocabulary(merge_names(list(self.index.relations.names()), world), "relation")
        ids, names = number_names(list(self.index.entities.names()), world)
        id_of_relation = relations.ids(self.index.relations.names())
        self.rows = [_renumbered(facts, ids, id_of_relation) for _, facts in self.files]
        of_files = self._notes_of_files()
        self.sizes = int(names.edges[-1]), len(relations)
        if self.found.whole:
            called = self.found.whole_called
            kept, dropped = self._distinct(self._of(range(len(self.found.files))))
            rows, drawn = hold_out(kept, *self.sizes, world, valid=valid, test=test, seed=seed)
            notes = [line for _, line in of_files] + note(
                called, dropped, "duplicate row", "dropped"
            )
            notes += [f"{called}: {line}" for line in drawn]
        else:
            rows, notes = self._splits(of_files)
        notes = [*self.found.notes, *notes]
        return GraphShare(self.found.name, names, relations, rows, world, tuple(notes))

    def _splits(self, of_files: list[tuple[int, str]]) -> tuple[dict[str, Tensor], list[str]]:
        """The rows of each split without repetitions."""
        rows: dict[str, Tensor] = {split: torch.empty(0, 3, dtype=torch.int64) for split in SPLITS}
        notes, trained, first = list[str](), (0, 0), 0
        for split in SPLITS:
            numbers = range(first, first := first + len(self.found.splits.get(split, [])))
            if not numbers:
                continue
            mine = self._of(numbers)
            if split == "train":
                trained = self._most(mine[:, [0, 2]]), self._most(mine[:, 1])
            self._refuse_new_relations(numbers, trained[1])
            rows[split], dropped = self._distinct(mine)
            called = self.found.called(split)
            notes += [line for number, line in of_files if number in numbers]
            notes += note(called, dropped, "duplicate row", "dropped")
            notes += self._unseen(called, rows[split], trained[0])
        return rows, notes

    def _of(self, numbers: range) -> Tensor:
        """The rows of some files that this process read, in order."""
        some = [
            rows
            for (part, _), rows in zip(self.files, self.rows, strict=True)
            if part.file in numbers
        ]
        return torch.cat([torch.empty(0, 3, dtype=torch.int64), *some])

    def _distinct(self, rows: Tensor) -> tuple[Tensor, int]:
        """The rows that neither this process nor one before has had already, and how many all dropped."""
        mixed = rows @ torch.tensor([1_000_003, 8_191, 127])
        kept = self.world.ask(mixed % self.world.size, rows, _is_first).bool()
        return rows[kept], int(self.world.add_up((~kept).sum()))

    def _most(self, ids: Tensor) -> int:
        """One more than the largest id in any process."""
        return int(self.world.collect(torch.tensor(_most(ids))).amax())

    def _refuse_new_relations(self, numbers: range, trained: int) -> None:
        """An error where a relation occurs that train never shows."""
        new = torch.zeros(len(self.found.files), dtype=torch.int64)
        for (part, _), rows in zip(self.files, self.rows, strict=True):
            new[part.file] += (rows[:, 1] >= trained).sum()
        new = self.world.add_up(new)
        with self.world.all_or_none():
            for (part, facts), rows in zip(self.files, self.rows, strict=True):
                wrong = rows[:, 1] >= trained
                if part.file in numbers and wrong.any():
                    first = int(wrong.int().argmax())
                    raise new_relation(facts, first, self.index, int(new[part.file]))

    def _unseen(self, called: str, rows: Tensor, trained: int) -> list[str]:
        """A note of the entities that train never shows."""
        ends = rows[:, [0, 2]]
        new = ends >= trained
        ids = ends[new].unique()
        order = (ids % self.world.size).argsort(stable=True)
        parcels = ids[order].split(
            (ids % self.world.size).bincount(minlength=self.world.size).tolist()
        )
        entities = torch.cat(self.world.deliver(parcels)).unique().numel()
        told = self.world.add_up(torch.tensor([entities, int(new.any(1).sum())]))
        return unseen_note(called, int(told[0]), int(told[1]))

    def _notes_of_files(self) -> list[tuple[int, str]]:
        """What was noticed in each file, with its number; an error if one has no facts or a blank line."""
        tallies = torch.zeros(len(self.found.files), 5, dtype=torch.int64)
        for part, facts in self.files:
            t = facts.tally
            tallies[part.file] = torch.tensor(
                [len(facts.triples), t.nodes, t.marks, t.returns, t.blank]
            )
        told = self.world.collect(tallies)  # (size, files, 5)
        with self.world.all_or_none():
            self._refuse_gaps(told)
        alone = self._lone_first_rows()
        mine: list[tuple[int, str]] = []
        for part, facts in self.files:
            if part.is_first:
                tally = Tally(*told[:, part.file, 1:].sum(0).tolist())
                lines = [*facts.notes, *tally.notes(part.path.name)]
                if facts.first_names and alone[part.file]:
                    lines.append(lone_row_note(part.path, facts.first_names))
                mine += [(part.file, line) for line in lines]
        texts = [f"{number} {line}" for number, line in mine]
        every = [
            text for some in deliver_texts([texts] * self.world.size, self.world) for text in some
        ]
        return sorted(
            ((int(text.partition(" ")[0]), text.partition(" ")[2]) for text in every),
            key=lambda entry: entry[0],
        )

    def _refuse_gaps(self, told: Tensor) -> None:
        for part, facts in self.files:
            rows, blank = told[:, part.file, 0], told[self.world.rank, part.file, 4]
            if part.is_first and not rows.any():
                raise no_facts_in(part.path)
            if blank and rows[self.world.rank + 1 :].any():
                last = 0 if facts.lines is None or not len(facts.lines) else int(facts.lines[-1])
                before = lines_before(part.path, facts.begin) if facts.begin else 0
                raise wrong_width(part.path, before + last + 1, [], 3)

    def _lone_first_rows(self) -> list[bool]:
        """Of each file whether its first row has three names that are in no row before and no other of it."""
        first = torch.zeros(
            len(self.found.files), 5, dtype=torch.int64
        )  # is one, head, relation, tail, rows
        for (part, facts), rows in zip(self.files, self.rows, strict=True):
            first[part.file, 4] += len(rows)
            if facts.first_names:
                first[part.file, :4] = torch.tensor([1, *rows[0].tolist()])
        first = self.world.add_up(first)
        shared = torch.zeros(len(first), dtype=torch.int64)
        for number in first[:, 0].nonzero()[:, 0].tolist():
            head, relation, tail = first[number, 1:4].tolist()
            rows = self._of(range(number + 1))
            ends = rows[:, [0, 2]]
            touched = ((ends == head) | (ends == tail)).any(1) | (rows[:, 1] == relation)
            shared[number] = touched.sum()
        shared = self.world.add_up(shared)  # the row itself is one
        return ((first[:, 0] == 1) & (shared == 1) & (first[:, 4] > 1)).tolist()


def _report(part: Part, number: int, parts: int, progress: Progress) -> Report:
    """Tells, in thousandths of all parts, how far the reading of one has come."""
    is_text = part.rows is not None and suffix_of(part.path) != ".parquet"
    bytes_ = part.rows if part.rows is not None and is_text else range(part.path.stat().st_size)

    def report(done: int) -> None:
        share = (done - bytes_.start) / max(1, len(bytes_))
        progress(round(1000 * (number + min(1.0, max(0.0, share)))), 1000 * parts)

    return report


def _renumbered(facts: FileFacts, ids: Tensor, relations: Tensor) -> Tensor:
    """Rows of this process's own numbers as rows of ids."""
    head, relation, tail = torch.from_numpy(facts.triples).unbind(1)
    return torch.stack((ids[head], relations[relation], ids[tail]), dim=1)


def _most(ids: Tensor) -> int:
    return int(ids.amax()) + 1 if ids.numel() else 0


def _is_first(rows: Tensor) -> Tensor:
    """Whether each row is there for the first time, (n,)."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64)
    _, first = np.unique(rows.numpy(), axis=0, return_index=True)
    kept = torch.zeros(len(rows), dtype=torch.int64)
    kept[torch.from_numpy(first)] = 1
    return kept
