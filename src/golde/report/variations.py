"""Studies around a configuration as sections of a page: settings changed, other models, and evidence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from golde.config import Config
from golde.errors import GoldeError, RetiredSettingError
from golde.report.notes import BEFORE_ANSWERS, splits, weighed
from golde.report.results import (
    EMBEDDING,
    STANDARD,
    Record,
    by_configuration,
    read_records,
    values,
    variants,
)
from golde.report.seeds import apart, gained
from golde.report.tables import Table, anchor, figure, machine, short_commit, trained

UNCHANGED = "as-configured"
"""The variant that all others are set beside."""

FULL_LENGTH = "full-length"
NOT_JOINED = "not-joined"
"""The study, and its variant, that leave out of evidence whether a fact joins the two entities already."""

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
        f"code trains, whose weights never move. {BEFORE_ANSWERS}",
    ),
    FULL_LENGTH: (
        "What moves accuracy at full length",
        "Settings that help most in short runs, for as many steps and with as many negatives as the "
        "configuration has, or more, and with its evidence; *alone* is the MRR of the embedding. *not "
        "joined* has the evidence but for the number for pairs that a training fact joins already. The "
        f"batch's answers were adopted by this table. {BEFORE_ANSWERS}",
    ),
    "beside-answers": (
        "What moves accuracy beside the batch's answers",
        "The configuration with the batch's answers among its negatives, and one to three more settings "
        "changed, for as many steps as it has; the embedding alone. The best was adopted by this table, so "
        "that *as configured* has the temperature .7 and the margin 10.",
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
        f"may do better with settings of its own. {BEFORE_ANSWERS}",
    ),
}

EVIDENCE = (
    "What facts in a row add",
    "[Evidence](evidence.md) of so many training facts counts beside the embedding, which is that of the "
    "configuration but for fewer steps and negatives. As many walks are taken as by default: the more facts "
    "in a row, the fewer questions weights are learned from. *none* is the mean of the embeddings of all "
    "rows, and a difference is to the embeddings of its own row. *joined*: that a fact joins the two "
    "already counts too. No fact held out of FB15k-237 is between two entities that a training fact joins: "
    f"there one hop alone can only tell what is not the answer. {BEFORE_ANSWERS}",
)


def variation_sections(results: Path) -> list[str]:
    """A section a study with a table a graph: the best first, beside the configuration."""
    records = read_records(results, "studies")
    sections = [
        (title, what, _tables(variants(records, study))) for study, (title, what) in STUDIES.items()
    ]
    sections.append((*EVIDENCE, _evidence_tables(variants(records, "evidence"))))
    return [
        "\n\n".join([f"## {title}", what, *(table.markdown() for table in tables)])
        for title, what, tables in sections
        if tables
    ]


def study_names(results: Path) -> list[str]:
    """Every study that there are result files of."""
    return sorted({path.parts[-3] for path in (results / "studies").glob("*/*/seed-*.json")})


def study_tables(results: Path, study: str) -> list[Table]:
    """The variants of one study, a table a graph: the best first, beside GRAPH-as-configured if there."""
    known = study_names(results)
    if study not in known:
        names = ", ".join(known) or "none"
        raise GoldeError(f"--study {study}: {results} has no results of it; it has {names}")
    found = by_configuration(read_records(results, "studies", study))
    if not found:
        raise GoldeError(f"--study {study}: nothing of it is ranked to the end; reproduce it again")
    return [_of_study(graph, named) for graph, named in found.items()]


def _of_study(graph: str, found: dict[str, list[Record]]) -> Table:
    """Beside the variant that is as configured; without one each beside its embedding, if more counts."""
    unchanged = f"{graph}-{UNCHANGED}"
    if unchanged not in found and all(weighed(records) == records for records in found.values()):
        return _evidence_table(graph, found)
    return _table(graph, found, unchanged)


def joined_share(results: Path) -> str:
    """What evidence adds with and without counting joined pairs, in words; empty where it was not asked."""
    found = variants(read_records(results, "studies"), FULL_LENGTH)
    told = ""
    for (graph, variant), without in found.items():
        if variant == NOT_JOINED and (in_all := found.get((graph, UNCHANGED))):
            told += (
                f" On the {splits(in_all)} facts of {graph} evidence added {_added(in_all)} to the MRR of "
                f"the configuration before this one, and {_added(without)} where it did not count whether a "
                "fact joins the two entities already "
                f"([at full length](results.md#{anchor(STUDIES[FULL_LENGTH][0])}))."
            )
    return told


def _added(records: list[Record]) -> str:
    """What evidence adds to the MRR of the embeddings of the same trainings."""
    gain = fmean(values(records, "mrr")) - fmean(values(map(_alone, records), "mrr"))
    return f"{gain:+.4f}".replace("0.", ".")


def _tables(found: dict[tuple[str, str], list[Record]]) -> list[Table]:
    return [
        _table(graph, _of(graph, found), _words(UNCHANGED))
        for graph, variant in found
        if variant == UNCHANGED
    ]


def _evidence_tables(found: dict[tuple[str, str], list[Record]]) -> list[Table]:
    return [
        _evidence_table(graph, _of(graph, found)) for graph in dict.fromkeys(g for g, _ in found)
    ]


def _of(graph: str, found: dict[tuple[str, str], list[Record]]) -> dict[str, list[Record]]:
    """The variants of a graph, called by words."""
    return {_words(variant): records for (of, variant), records in found.items() if of == graph}


def _words(variant: str) -> str:
    return variant.replace("-", " ")


def _table(graph: str, found: dict[str, list[Record]], unchanged: str) -> Table:
    base = _by_seed(found.get(unchanged, []))
    best_first = sorted(found.items(), key=lambda one: -fmean(values(one[1], "mrr")))
    rows = [_row(name, records, {} if name == unchanged else base) for name, records in best_first]
    note = _note(found, rows)
    if any(EMBEDDING in record["figures"] for _, records in best_first for record in records):
        alone = [_mrr(map(_alone, records)) for _, records in best_first]
        rows = [[*row, mrr] for row, mrr in zip(rows, alone, strict=True)]
        return Table(graph, [*HEAD, ALONE], rows, note)
    return Table(graph, HEAD, rows, note)


def _evidence_table(graph: str, found: dict[str, list[Record]]) -> Table:
    """The embeddings alone, then what each variant makes of its own."""
    alone = {name: [_alone(record) for record in records] for name, records in found.items()}
    rows = [_row(name, records, _by_seed(alone[name])) for name, records in found.items()]
    every = [record for records in alone.values() for record in records]
    return Table(graph, HEAD, [_row("none", every, {}), *rows], _note(found, rows))


def _alone(record: Record) -> Record:
    """The same with the figures of the embedding as its own; they are where evidence changes nothing."""
    figures = record["figures"]
    return record | {"figures": {STANDARD: figures.get(EMBEDDING, figures[STANDARD])}}


def _by_seed(records: list[Record]) -> dict[int, float]:
    """The MRR of each seed."""
    return dict(zip((record["seed"] for record in records), values(records, "mrr"), strict=True))


def _row(name: str, records: list[Record], beside: dict[int, float]) -> list[str]:
    difference = gained(_by_seed(records), beside).replace("0.", ".")
    others = [figure(one, fmean(values(records, one))) for one in ("hits@10", "mr")]
    marked = name + (" †" if any(map(_has_retired_setting, records)) else "")
    seeds = len({record["seed"] for record in records})
    return [marked, str(seeds), _mrr(records), difference, *others]


def _mrr(records: Iterable[Record]) -> str:
    """With a digit more than elsewhere: what is told apart differs little."""
    return f"{fmean(values(records, 'mrr')):.4f}".removeprefix("0")


def _note(found: dict[str, list[Record]], cells: list[list[str]]) -> str:
    records = [record for one in found.values() for record in one]
    rows = [values(one, "mrr") for one in found.values()]
    commits = ", ".join(dict.fromkeys(record["commit"] for record in records))
    retired = (
        " †: by a setting that was removed since."
        if any(map(_has_retired_setting, records))
        else ""
    )
    by_seed = any("(" in row[HEAD.index("difference")] for row in cells)
    seeds = ", mean over seeds" if any(len(row) > 1 for row in rows) else ", one seed"
    brackets = "; differences are at the same seeds, those of each in brackets" if by_seed else ""
    return (
        f"{splits(records).capitalize()}, standard protocol, {trained(records)}{seeds}{apart(rows)}"
        f"{brackets}. {_machines(found)}, commit {short_commit(commits)}.{retired}"
    )


def _machines(found: dict[str, list[Record]]) -> str:
    """What everything was trained on; where that is not one machine, which variants on each."""
    names: dict[str, dict[str, None]] = {}
    for name, records in found.items():
        for record in records:
            names.setdefault(machine(record), {})[name] = None
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(some)} on {where}" for where, some in names.items())


def _has_retired_setting(record: Record) -> bool:
    file = f"studies/{record['study']}/{record['config']}/seed-{record['seed']}.json"
    try:
        Config.from_dict(record["settings"], source=file)
    except RetiredSettingError:
        return True
    return False
