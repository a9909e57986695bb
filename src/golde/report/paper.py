"""The paper's evidence beside ours: its tables, each cell of ours from a result file or *not run*."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

from golde.config import Config
from golde.data.catalogue import entries
from golde.report import notes
from golde.report.results import (
    EMBEDDING,
    FIGURES,
    PROTOCOLS,
    Record,
    by_configuration,
    numbers_an_entity,
    parameters,
    read_records,
    relations_alone,
    values,
    variants,
)
from golde.report.tables import (
    NOT_RUN,
    Table,
    figure,
    machines,
    mean_or_not_run,
    published,
    shared,
)
from golde.words import duration, label

GRAPHS = {"wn18rr": "WN18RR", "fb15k-237": "FB15k-237", "yago3-10": "YAGO3-10"}
"""The sets of the paper; the configuration of each is called after it, with ``-k32`` at 32 numbers."""

SMALL = "-k32"
IN_WORDS = {
    "standard": "standard",
    "self_filter": "self-filter",
    EMBEDDING: "the embedding alone, standard",
}
SPACES = {
    "E": "E, one space",
    "P": "P, one space",
    "Q": "Q, one space",
    "PP": "products of P",
    "QQ": "products of Q",
    "PQ": "P × Q",
}

SIZES = (
    "Up to 32 ours have the settings of the configuration of 32 numbers, from 500 on those of full size; at "
    "50 and 200 some between these, chosen in short runs on the same validation facts."
)
Curve = dict[float, float]
"""MRR by dimension or size."""


@cache
def paper() -> dict[str, Any]:
    """Every figure of the paper that there is a table for."""
    text = (resources.files("golde.report") / "published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class PaperTables:
    """What was run, ready to be set beside what was published."""

    def __init__(self, results: Path, configs: Path) -> None:
        runs, studies = (read_records(results, kind) for kind in ("runs", "studies"))
        self.runs = by_configuration(filter(_is_on_published_facts, runs))
        self.studies = list(filter(_is_on_published_facts, studies))
        self.configs = configs
        self._others = Counter(
            r["graph"] for r in (*runs, *studies) if not _is_on_published_facts(r)
        )

    def of(self, graph: str, config: str) -> list[Record]:
        """The seeds of a configuration."""
        return self.runs.get(graph, {}).get(config, [])

    def tables(self) -> list[Table]:
        """All of them, in the order of the paper."""
        return [
            *self.main(),
            *self.geometries(),
            self.relations(),
            *self.small(),
            self.time(),
            self.parameters(),
            *self.dimensions(),
            self.sizes(),
        ]

    def main(self) -> list[Table]:
        """Table 2: each graph, both protocols."""
        head = ["model", *map(label, _ORDER), "seeds"]
        return [
            Table(
                f"Table 2, {title}: link prediction",
                head,
                self._rows("table2", graph, _ORDER, lambda name: not name.endswith(SMALL), graph),
                f"Published figures first; those of GoldE {_protocol(graph)}. "
                f"{notes.headline(self.of(graph, graph), paper()['table2'][graph]['GoldE']['mrr'])}"
                f"{self._left_out(graph)}",
            )
            for graph, title in GRAPHS.items()
        ]

    def behind(self) -> str:
        """Where the embedding alone is behind the published figures, in words; empty where it is nowhere."""
        found = []
        for table, suffix in (("table2", ""), ("table11", SMALL)):
            for graph in GRAPHS:
                published = paper()[table][graph]["GoldE"]
                theirs = {name: published[name] for name in _HEADLINE if name in published}
                if pairs := notes.behind(self.of(graph, graph + suffix), theirs):
                    found.append(f"{graph}{suffix} ({', '.join(pairs)})")
        if not found:
            return ""
        *first, last = map(label, _HEADLINE)
        return (
            "**Behind the paper without evidence**: the embedding alone is worse than the paper's GoldE, of "
            f"which some figures are self-filtered, in these of {', '.join(first)} and {last}: "
            f"{', '.join(found)}."
        )

    def _left_out(self, graph: str) -> str:
        """How many results are no evidence beside the paper's, whatever their graph is called."""
        many = self._others[graph]
        return (
            f" Left out here and below: {many} result{'s' * (many != 1)} on other facts of that name."
            if many
            else ""
        )

    def small(self) -> list[Table]:
        """Tables 5 and 11: 32 numbers an entity."""
        names = [name for name in _ORDER if name != "mr"]
        return [
            Table(
                f"Tables 5 and 11, {title}: 32 numbers an entity",
                ["model", *map(label, names), "seeds"],
                self._rows(
                    "table11", graph, names, lambda name: name.endswith(SMALL), graph + SMALL
                ),
                _with_protocol(
                    notes.small(
                        self.of(graph, graph + SMALL), paper()["table11"][graph]["GoldE"]["mrr"]
                    ),
                    graph,
                ),
            )
            for graph, title in GRAPHS.items()
        ]

    def _rows(
        self,
        table: str,
        graph: str,
        names: list[str],
        belongs: Callable[[str], bool],
        headline: str,
    ) -> list[list[str]]:
        """What was published, then every configuration of ours that belongs there, the headline first."""
        rows = [
            [model, *(published(block, name) for name in names), ""]
            for model, block in paper()[table][graph].items()
        ]
        others = [name for name in self.runs.get(graph, {}) if belongs(name) and name != headline]
        for config in [headline, *others]:
            records = self.of(graph, config)
            alone = [EMBEDDING] if notes.weighed(records) else []
            for protocol in [*PROTOCOLS, *alone]:
                cells = [mean_or_not_run(values(records, name, protocol), name) for name in names]
                rows.append([f"ours: {config}, {IN_WORDS[protocol]}", *cells, _count(records)])
        return rows

    def geometries(self) -> list[Table]:
        """Table 3: what each geometry is worth."""
        found = self._study("table3")
        tables = []
        for graph, title in GRAPHS.items():
            rows = []
            for key, block in paper()["table3"][graph].items():
                records = found.get((graph, key), [])
                rows.append(
                    [
                        SPACES[key],
                        *(published(block, name) for name in ("mrr", "hits@10")),
                        *(mean_or_not_run(values(records, n), n) for n in ("mrr", "hits@10")),
                        records[0]["settings"]["model"]["signature"] if records else "",
                        _count(records),
                    ]
                )
            head = ["geometry", "MRR", "H@10", "our MRR", "our H@10", "our space", "seeds"]
            configured = self.of(graph, graph + SMALL)
            of_graph = [r for (g, _), records in found.items() if g == graph for r in records]
            note = _with_protocol(
                f"{notes.study(of_graph)}{notes.sizes(of_graph, configured)}", graph
            )
            tables.append(Table(f"Table 3, {title}: geometries", head, rows, note))
        return tables

    def relations(self) -> Table:
        """Table 4: WN18RR by relation."""
        theirs = paper()["table4"]
        records = [
            r
            for r in self.of("wn18rr", "wn18rr")
            if all("_" + name in r["relations"] for name in theirs)
        ]
        columns = {"ours": [record["relations"] for record in records]}
        alone = [relations_alone(record) or {} for record in records]
        if notes.weighed(records) and all(
            "_" + name in found for found in alone for name in theirs
        ):
            columns["alone"] = alone
        rows = []
        for name, block in theirs.items():
            models = [figure("mrr", block[model]) for model in ("RotH", "HousE", "GoldE")]
            ours = [
                mean_or_not_run([found["_" + name]["mrr"] for found in column], "mrr")
                for column in columns.values()
            ]
            rows.append([name, f"{block['facts']:,}", *models, *ours])
        return Table(
            "Table 4: MRR by relation of WN18RR",
            ["relation", "facts", "RotH", "HousE", "GoldE", *columns],
            rows,
            _with_protocol(notes.by_relation(records, "alone" in columns), "wn18rr"),
        )

    def time(self) -> Table:
        """Table 7: how long training takes."""
        rows = [
            [model, *(f"{block[graph]} h" for graph in GRAPHS)]
            for model, block in paper()["table7"].items()
        ]
        ours = {graph: self.of(graph, graph) for graph in GRAPHS}
        rows.append(
            [
                "ours",
                *(
                    duration(fmean(r["training"]["seconds"] for r in records))
                    if records
                    else NOT_RUN
                    for records in ours.values()
                ),
            ]
        )
        run = [record for records in ours.values() for record in records]
        note = (
            f"Ours, means over seeds, on {machines(run)}{shared(run)}: validation, evidence and compiling "
            "kernels, as far as they are not cached, included. The published times are on the paper's "
            "hardware."
            if run
            else ""
        )
        return Table("Table 7: training time", ["model", *GRAPHS.values()], rows, note)

    def parameters(self) -> Table:
        """Table 9: how many numbers are learned; ours are counted, not run."""
        rows = [
            [model, *(f"{block[graph]:.2f} M" if graph in block else "–" for graph in GRAPHS)]
            for model, block in paper()["table9"].items()
        ]
        rows.append(["ours", *map(self._counted, GRAPHS)])
        return Table(
            "Table 9: parameters",
            ["model", *GRAPHS.values()],
            rows,
            "Ours are counted from `configs/`, relations in both directions and biases included, weights of "
            f"evidence not{self._evidence_weights()}.",
        )

    def _evidence_weights(self) -> str:
        """How many numbers evidence learned beside the models of Table 9, in words."""
        found = {graph: notes.learned_bodies(self.of(graph, graph)) for graph in GRAPHS}
        told = " and ".join(f"{many:,.0f} on {graph}" for graph, many in found.items() if many)
        return f" (one for each kind of walk: {told})" if told else ""

    def _counted(self, graph: str) -> str:
        path = self.configs / f"{graph}.toml"
        if not path.is_file():
            return NOT_RUN
        config, counts = Config.load(path), entries()[graph].counts
        has_size = config.model.signature or config.model.numbers  # else it comes from the graph
        if config.graph != graph or not has_size:
            return NOT_RUN
        found = parameters(config.model, counts.entities, counts.relations)
        return f"{found['all'] / 1e6:.2f} M"

    def dimensions(self) -> list[Table]:
        """Figure 3 in figures."""
        return [
            Table(
                f"Figure 3, {GRAPHS[graph]}: MRR by dimension",
                ["dimension", *(f"{who}{letter}" for letter in theirs for who in ("", "our "))],
                _side_by_side(theirs, self.dimension_curves(graph)),
                _with_protocol(self._dimension_note(graph), graph),
            )
            for graph, theirs in paper()["figure3"].items()
        ]

    def _dimension_note(self, graph: str) -> str:
        records = [r for r in self._records("figure3") if r["graph"] == graph]
        unlike = notes.unlike(records, [self.of(graph, graph)], varied=("signature", "weights"))
        return notes.study(records) + unlike

    def sizes(self) -> Table:
        """Figure 4 in figures."""
        theirs = paper()["figure4"]
        ours = self.size_curve()
        rows = [
            [f"{size:g}", *(figure("mrr", mrr) for mrr in each), _cell(ours, size)]
            for size, *each in _columns(theirs)
        ]
        return Table(
            "Figure 4: MRR on WN18RR by numbers an entity",
            ["numbers", *theirs, "ours"],
            rows,
            _with_protocol(self._size_note(), "wn18rr"),
        )

    def _size_note(self) -> str:
        records = self._records("figure4")
        told = f"{notes.study(records)}{notes.space(records)} {SIZES}" if records else ""
        return f"{told}{self._other_sizes()}"

    def _other_sizes(self) -> str:
        """Where ours has not as many numbers as the place that it stands in, in words."""
        found = {size: records for (_, size), records in self._study("figure4").items()}
        other = [
            f"{numbers} at {size}"
            for size, records in found.items()
            if (numbers := numbers_an_entity(records[0])) != float(size)
        ]
        return f" Ours has {', '.join(other)}." if other else ""

    def dimension_curves(self, graph: str) -> dict[str, Curve]:
        """Our Figure 3: MRR by dimension of each geometry."""
        curves: dict[str, Curve] = {letter: {} for letter in paper()["figure3"][graph]}
        for (of, variant), records in self._study("figure3").items():
            letter, _, dimension = variant.partition("-")
            if of == graph:
                curves[letter][float(dimension)] = fmean(values(records, "mrr"))
        return curves

    def size_curve(self) -> Curve:
        """Our Figure 4: MRR by numbers an entity."""
        return {
            float(variant): fmean(values(records, "mrr"))
            for (_, variant), records in self._study("figure4").items()
        }

    def ranked_on(self, study: str) -> str:
        """What the figures of a study were ranked on, in words."""
        return notes.splits(self._records(study))

    def _records(self, study: str) -> list[Record]:
        return [r for records in self._study(study).values() for r in records]

    def _study(self, name: str) -> dict[tuple[str, str], list[Record]]:
        """The variants of a study that the paper has a place for, of models that have a space."""
        with_space = [r for r in self.studies if "signature" in r["settings"]["model"]]
        places = _places(name)
        found = variants(with_space, name)
        return {key: records for key, records in found.items() if key in places}


_HEADLINE = ("mrr", "hits@10", "mr")
_ORDER = ["mr", *(name for name in FIGURES if name != "mr")]
_SELF_FILTERED = ("wn18rr", "yago3-10")
_FILTERED = "are without the query's own entity among the candidates (self-filter)"


def _protocol(graph: str) -> str:
    return _FILTERED if graph in _SELF_FILTERED else "are under the standard protocol"


def _with_protocol(note: str, graph: str) -> str:
    """A note of a table beyond the main one, and after it what is said there where protocols differ."""
    theirs = f"As in Table 2 the published figures of GoldE {_FILTERED}."
    return " ".join(part for part in (note, theirs if graph in _SELF_FILTERED else "") if part)


@cache
def _places(study: str) -> frozenset[tuple[str, str]]:
    """The graph and variant of everything in a table or figure that a study is made for."""
    theirs = paper()[study]
    if study == "table3":
        return frozenset((graph, key) for graph, rows in theirs.items() for key in rows)
    if study == "figure4":
        return frozenset(("wn18rr", f"{size:g}") for size, _ in theirs["GoldE"])
    return frozenset(
        (graph, f"{letter}-{dimension:g}")
        for graph, curves in theirs.items()
        for letter, points in curves.items()
        for dimension, _ in points
    )


def _is_on_published_facts(record: Record) -> bool:
    """Whether a record is on a set of the paper, and not on a folder that is called like one."""
    if record["graph"] not in GRAPHS:
        return False
    return entries()[record["graph"]].is_of(record["digest"], record.get("counts"))


def _count(records: list[Record]) -> str:
    return str(len(records)) if records else ""


def _pair(point: list[float]) -> tuple[float, float]:
    place, value = point
    return place, value


def _columns(curves: dict[str, list[list[float]]]) -> list[list[float]]:
    """Curves over the same places as rows: the place, then the value of each curve."""
    by_place = [dict(map(_pair, curve)) for curve in curves.values()]
    return [[place, *(curve[place] for curve in by_place)] for place in by_place[0]]


def _side_by_side(theirs: dict[str, list[list[float]]], ours: dict[str, Curve]) -> list[list[str]]:
    rows = []
    for place, *each in _columns(theirs):
        pairs = [
            (figure("mrr", mrr), _cell(ours[letter], place))
            for letter, mrr in zip(theirs, each, strict=True)
        ]
        rows.append([f"{place:g}", *(cell for pair in pairs for cell in pair)])
    return rows


def _cell(curve: Curve, place: float) -> str:
    return figure("mrr", curve[place]) if place in curve else NOT_RUN
