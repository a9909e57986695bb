"""Studies around a configuration as sections of a page: settings changed, other models, and evidence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from golde.errors import GoldeError
from golde.report.notes import splits, unlike, weighed
from golde.report.results import (
    EMBEDDING,
    STANDARD,
    Record,
    by_configuration,
    config_of,
    figures_under,
    files,
    read_records,
    values,
    variants,
)
from golde.report.seeds import apart, bare, gained, signed
from golde.report.tables import Table, anchor, figure, machine, short_commit, trained

Variants = dict[str, list[Record]]
"""The seeds of each variant of a graph, or of each of its configurations."""

Runs = dict[str, Variants]
"""The configurations of each graph."""

UNCHANGED = "as-configured"
"""The variant that all others are set beside."""

FULL_LENGTH = "full-length"
NOT_JOINED = "not-joined"
"""The study, and the one of its variants that has evidence without the number for joined pairs."""

OF_MEANS = (
    "‡: difference of the means, as not all seeds have their like on the same machine and versions."
)
HEAD = ["variant", "seeds", "MRR", "difference", "H@10", "MR"]
ALONE = "alone"
"""The column of the embedding's MRR, where evidence counts beside it."""

STUDIES = {
    "levers": (
        "What moves accuracy",
        "One setting of the configuration is changed at a time, for fewer steps and mostly with fewer "
        "negatives: what helps here need not help at full length with all negatives. Without the query's own "
        "entity as a negative there is no bias of loops either, which is learned from it. Elliptic weights "
        "are live: *elliptic for Euclidean* has them, and *Euclidean for elliptic* is what the published "
        "code trains, whose weights never move. What helps on neither set is still a setting where the "
        "paper, a preset or a baseline has it: rare facts that weigh more, squared distances, cross-entropy, "
        "n3, other numbers of reflections.",
    ),
    FULL_LENGTH: (
        "What moves accuracy at full length",
        "Settings that help most in short runs, for as many steps and with as many negatives as the "
        "configuration has, or more, and with its evidence; *alone* is the MRR of the embedding. *not "
        "joined* has the evidence without the number for pairs that a training fact joins already. The "
        "batch's answers became part of the configuration because of this table.",
    ),
    "beside-answers": (
        "What moves accuracy beside the batch's answers",
        "The configuration with the batch's answers among its negatives, and one to three more settings "
        "changed, for as many steps as it has; the embedding alone. The best became part of the "
        "configuration because of this table.",
    ),
    "small-full-length": (
        "What moves accuracy at full length with 32 numbers",
        "Settings that help most in short runs at full size, in the configuration with 32 numbers an entity, "
        "for as many steps and with as many negatives as it has, or more; the embedding alone.",
    ),
    "baselines": (
        "Other models in the same trainer",
        "Models of about as many numbers an entity (those of relations differ), with the batches, learning "
        "rate, margin and ranking of the configuration, all of them for fewer steps and with fewer "
        "negatives; DistMult and ComplEx learn by cross-entropy with a penalty on cubes, as is usual for "
        "them, the others by the configuration's loss. RotatE, HousE and TransE have one map for both "
        "directions of a relation, as published, the configuration, RotH and RefH one for each (*inverse* "
        "[above](#what-moves-accuracy) says what that is worth to it). All settings were chosen for the "
        "configuration and none for the others, so this compares models under one budget, and each of them "
        "may do better with settings of its own.",
    ),
}

EVIDENCE = (
    "What facts in a row add",
    "[Evidence](evidence.md) of so many training facts counts beside the embedding, which is that of the "
    "configuration but for fewer steps and negatives. As many walks are taken as by default: the more facts "
    "in a row, the fewer questions weights are learned from. *none* is the mean of the embeddings of all "
    "rows, and a difference is to the embeddings of its own row. *joined*: that a fact joins the two "
    "already counts too. No fact held out of FB15k-237 is between two entities that a training fact joins: "
    "there one hop alone can only tell what is not the answer.",
)


def variation_sections(results: Path) -> list[str]:
    """A section a study with a table a graph: the best first, beside the configuration."""
    records, runs = _read(results)
    sections = [
        (title, what, _tables(variants(records, study), runs))
        for study, (title, what) in STUDIES.items()
    ]
    sections.append((*EVIDENCE, _evidence_tables(variants(records, "evidence"), runs)))
    return [
        "\n\n".join([f"## {title}", what, *(table.markdown() for table in tables)])
        for title, what, tables in sections
        if tables
    ]


def _read(results: Path, study: str | None = None) -> tuple[list[Record], Runs]:
    """What studies were trained, one or all, and the configurations as they were reproduced."""
    runs = by_configuration(read_records(results, "runs"))
    return read_records(results, "studies", study), runs


def study_names(results: Path) -> list[str]:
    """Every study that there are result files of."""
    return sorted({path.parts[-3] for path in files(results, "studies")})


def study_tables(results: Path, study: str) -> list[Table]:
    """The variants of one study, a table a graph: the best first, beside GRAPH-as-configured if there."""
    known = study_names(results)
    if study not in known:
        names = ", ".join(known) or "none"
        raise GoldeError(f"--study {study}: {results} has no results of it; it has {names}")
    records, runs = _read(results, study)
    if not records:
        raise GoldeError(f"--study {study}: nothing of it is ranked to the end; reproduce it again")
    return [_of_study(graph, named, runs) for graph, named in by_configuration(records).items()]


def _of_study(graph: str, found: Variants, runs: Runs) -> Table:
    """Beside the variant that is as configured; without one each beside its embedding, if more counts."""
    unchanged = f"{graph}-{UNCHANGED}"
    if unchanged not in found and all(map(_asks_for_evidence, _every(found))):
        return _evidence_table(graph, found, runs)
    return _table(graph, found, unchanged, runs)


def _asks_for_evidence(record: Record) -> bool:
    return bool(record["settings"].get("evidence", {}).get("hops"))


def _every(found: Variants) -> list[Record]:
    return [record for records in found.values() for record in records]


def joined_share(results: Path) -> list[str]:
    """What evidence adds with and without counting joined pairs, in words; none where it was not asked."""
    found = variants(read_records(results, "studies"), FULL_LENGTH)
    return [
        f"In a study evidence added {_added(in_all)} to the MRR on the {splits(in_all)} facts of {graph}, "
        f"and {_added(without)} where it did not count whether a fact joins the two entities already "
        f"([at full length](results.md#{anchor(STUDIES[FULL_LENGTH][0])}))."
        for (graph, variant), without in found.items()
        if variant == NOT_JOINED and (in_all := found.get((graph, UNCHANGED)))
    ]


def _added(records: list[Record]) -> str:
    """What evidence adds to the MRR of the embeddings of the same trainings."""
    gain = fmean(values(records, "mrr")) - fmean(values(map(_alone, records), "mrr"))
    return bare(signed(gain))


def _tables(found: dict[tuple[str, str], list[Record]], runs: Runs) -> list[Table]:
    return [
        _table(graph, _of(graph, found), _words(UNCHANGED), runs)
        for graph, variant in found
        if variant == UNCHANGED
    ]


def _evidence_tables(found: dict[tuple[str, str], list[Record]], runs: Runs) -> list[Table]:
    return [
        _evidence_table(graph, _of(graph, found), runs)
        for graph in dict.fromkeys(g for g, _ in found)
    ]


def _of(graph: str, found: dict[tuple[str, str], list[Record]]) -> Variants:
    """The variants of a graph, called by words."""
    return {_words(variant): records for (of, variant), records in found.items() if of == graph}


def _words(variant: str) -> str:
    return variant.replace("-", " ")


def _table(graph: str, found: Variants, unchanged: str, runs: Runs) -> Table:
    base = found.get(unchanged, [])
    best_first = sorted(found.items(), key=lambda one: -fmean(values(one[1], "mrr")))
    rows = [_row(name, records, [] if name == unchanged else base) for name, records in best_first]
    note = _note(found, rows) + unlike(base, _configured(graph, base, runs))
    if any(map(weighed, found.values())):
        alone = [_mrr(map(_alone, records)) for _, records in best_first]
        rows = [[*row, mrr] for row, mrr in zip(rows, alone, strict=True)]
        return Table(graph, [*HEAD, ALONE], rows, note)
    return Table(graph, HEAD, rows, note)


def _evidence_table(graph: str, found: Variants, runs: Runs) -> Table:
    """The embeddings alone, then what each variant makes of its own."""
    every = _every(found)
    rows = [_row(name, records, list(map(_alone, records))) for name, records in found.items()]
    none = _row("none", list(map(_alone, every)), [])
    note = _note(found, rows) + unlike(every, _configured(graph, every, runs))
    return Table(graph, HEAD, [none, *rows], note)


def _configured(graph: str, records: list[Record], runs: Runs) -> list[list[Record]]:
    """The configurations of a study's space, or of its kind of baseline, as they were reproduced."""
    spaces = list(map(_space, records))
    return [seeds for seeds in runs.get(graph, {}).values() if _space(seeds[0]) in spaces]


def _space(record: Record) -> tuple[Any, ...]:
    """The kind of model, and its space or size."""
    model = record["settings"]["model"]
    return model.get("kind", "golde"), model.get("signature"), model.get("numbers")


def _alone(record: Record) -> Record:
    """The same with the figures of the embedding as its own; they are where evidence changes nothing."""
    return record | {"figures": {STANDARD: figures_under(record, EMBEDDING)}}


def _row(name: str, records: list[Record], beside: list[Record]) -> list[str]:
    others = [figure(one, fmean(values(records, one))) for one in ("hits@10", "mr")]
    marked = name + (" †" if any(map(_has_retired_setting, records)) else "")
    seeds = len({record["seed"] for record in records})
    return [marked, str(seeds), _mrr(records), _difference(records, beside), *others]


def _difference(records: list[Record], beside: list[Record]) -> str:
    """Seed by seed where each draws the same in both, which it does on one machine; else of the means."""
    if not beside:
        return ""
    mine, theirs = _by_seed(records), _by_seed(beside)
    if mine.keys() <= theirs.keys():
        return bare(gained(mine, theirs))
    gain = fmean(values(records, "mrr")) - fmean(values(beside, "mrr"))
    return f"{bare(signed(gain))} ‡"


def _by_seed(records: list[Record]) -> dict[tuple[int, str], float]:
    """The MRR of each seed on its machine."""
    drawn = ((record["seed"], machine(record)) for record in records)
    return dict(zip(drawn, values(records, "mrr"), strict=True))


def _mrr(records: Iterable[Record]) -> str:
    """With a digit more than elsewhere: what is told apart differs little."""
    return bare(f"{fmean(values(records, 'mrr')):.4f}")


def _note(found: Variants, cells: list[list[str]]) -> str:
    records = _every(found)
    rows = [values(one, "mrr") for one in found.values()]
    by_retired = {r["commit"]: None for r in records if _has_retired_setting(r)}
    retired = (
        f" †: by a setting that was removed since, as of commit {short_commit(', '.join(by_retired))}."
        if by_retired
        else ""
    )
    differences = [row[HEAD.index("difference")] for row in cells]
    by_seed = any("(" in one for one in differences)
    other = f" {OF_MEANS}" if any("‡" in one for one in differences) else ""
    seeds = ", mean over seeds" if any(len(row) > 1 for row in rows) else ", one seed"
    brackets = "; differences are at the same seeds, those of each in brackets" if by_seed else ""
    return (
        f"{splits(records).capitalize()}, standard protocol, {trained(records)}{seeds}{apart(rows)}"
        f"{brackets}. {_machines(found)}.{retired}{other}"
    )


def _machines(found: Variants) -> str:
    """What everything was trained on, and as of which commits; which variants, where on several machines."""
    names: dict[str, dict[str, None]] = {}
    commits: dict[str, dict[str, None]] = {}
    for name, records in found.items():
        for record in records:
            names.setdefault(machine(record), {})[name] = None
            commits.setdefault(machine(record), {})[record["commit"]] = None
    which = {where: f"{', '.join(some)} on " for where, some in names.items() if len(names) > 1}
    return "; ".join(
        f"{which.get(where, '')}{where}, commit {short_commit(', '.join(commits[where]))}"
        for where in names
    )


def _has_retired_setting(record: Record) -> bool:
    return config_of(record) is None
