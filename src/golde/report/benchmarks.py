"""What the commands of ``benchmarks/`` found, one section of a page each.

No figure is typed by hand: each comes from a file that such a command wrote into ``results/``, with its
commit, versions, machine, seed and protocol inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from golde.errors import GoldeError
from golde.report.gpu_sections import (
    gpu_accuracy,
    gpu_budget,
    gpu_growth,
    gpu_roofline,
    gpu_step,
)
from golde.report.large_tables import large_tables
from golde.report.other_levers import other_levers
from golde.report.own_graph_sections import (
    advise_geometry,
    advise_million,
    complete_heads,
    evidence_accuracy,
    explain_million,
    extend_experiment,
    extend_million,
    paths,
)
from golde.report.scaling import scaling
from golde.report.shown_answers import shown_answers
from golde.report.tables import markdown as table
from golde.report.tables import provenance, sources
from golde.report.yago_part import yago_part
from golde.runs.atomic import read_json


def default_accuracy(found: dict[str, Any]) -> str:
    """What `golde train NAME --out RUN` reaches with no option set."""
    rows = []
    for name, one in found["results"].items():
        both, rivals = one["test"]["both"], one["baselines"]
        low, high = both["intervals"]["mrr"]
        rows.append(
            [
                name,
                f"{one['settings']['model']['signature']}",
                f"{one['seconds']:.0f} s",
                f"**{both['mrr']:.3f}** ({low:.3f}–{high:.3f})",
                f"{both['hits@1']:.3f}",
                f"{both['hits@10']:.3f}",
                f"{rivals['popularity']['both']['mrr']:.3f}",
                f"{rivals['rules']['both']['mrr']:.3f}",
            ]
        )
    head = ["set", "space", "training", "test MRR (95%)", "H@1", "H@10", "popularity", "rules"]
    seeds = sorted({one["seed"] for one in found["results"].values()})
    threads = sorted({one["threads"] for one in found["results"].values()})
    return (
        f"{table(head, rows)}\n\nFiltered, both sides, realistic rank on ties, the query's own entity "
        "a candidate like any other. Settings chosen from the graph, parameters on validation; test "
        "was ranked once by each run. Earlier versions of the file, if its history has any, ranked it too. "
        "The last two columns are the MRR of the baselines. One run each, seed "
        f"{', '.join(map(str, seeds))}, {', '.join(map(str, threads))} threads. {provenance(found)}; "
        "written by `benchmarks/default_accuracy.py`."
    )


def cpu_speed(found: dict[str, Any]) -> str:
    """Training and evaluation beside PyKEEN's RotatE."""
    rows = []
    for one in found["results"]:
        ours, theirs, ratio = one["golde"], one["pykeen"], one["ratio"]
        rows.append(
            [
                f"{one['dataset']}, {one['numbers']}",
                f"{ours['train']['median']:,.0f}",
                f"{theirs['train']['median']:,.0f}",
                f"**{ratio['train']:.1f}×**",
                f"{ratio['train_default']:.1f}×",
                f"{ours['evaluate_sample']['median']:,.0f}",
                f"{theirs['evaluate']['median']:,.0f}",
                f"**{ratio['evaluate_sample']:.1f}×**",
            ]
        )
    head = ["set, numbers", "train, ours", "PyKEEN", "ratio", "untuned"]
    head += ["rank, ours", "PyKEEN", "ratio"]
    settings = found["results"][0]["settings"]
    versions = found["results"][0]["pykeen_versions"]
    return (
        f"{table(head, rows)}\n\nFacts a second with {settings['negatives']} negatives (one positive "
        "with its negatives, optimiser step included) and test queries a second under the filter, the "
        "same facts on both sides: our elliptic × hyperbolic product against PyKEEN "
        f"{versions['pykeen']}'s RotatE of the same size, each at its best batch size. *untuned*: the "
        "ratio of training with nothing but the signature set on our side, which then chooses how many facts "
        f"a batch has and how many negatives: {_chosen(found['results'])}. Medians of {settings['repeats']} "
        f"repeats, {settings['threads']} threads, the two taking turns. "
        f"{sources(found['results'])}; written by `benchmarks/pykeen_speed.py`."
    )


def _chosen(results: list[dict[str, Any]]) -> str:
    """The size of batches and the number of negatives of each set by default, in words."""
    defaults = {one["dataset"]: one["golde"]["train_default"] for one in results}
    return "; ".join(
        f"{name} {one['batch_size']:,} and {one['candidates']:,}" for name, one in defaults.items()
    )


def load_million(found: dict[str, Any]) -> str:
    """A million rows from file to an indexed graph."""
    rows = []
    for name, one in found["results"].items():
        ready, growth = one["ready_s"], one["peak_growth_mb"]
        rows.append(
            [
                name,
                f"**{ready['median']:.1f} s**",
                f"{ready['max']:.1f} s",
                f"{growth['median']:.0f} MiB",
                f"{growth['max']:.0f} MiB",
            ]
        )
    head = ["format", "ready in", "slowest", "memory", "most"]
    settings, loaded = found["settings"], found["results"]["tsv"]
    return (
        f"{table(head, rows)}\n\n{loaded['facts']:,} facts over {loaded['entities']:,} entities and "
        f"{settings['relations']:,} relations, read, numbered, split and all known facts indexed; "
        "memory is how much the peak of the process grew. Medians of "
        f"{settings['repeats']} repeats, each in a process of its own, {settings['threads']} threads. "
        f"{provenance(found)}, pyarrow {found['versions']['pyarrow']}; written by "
        "`benchmarks/load_million.py`."
    )


def serve_load(found: dict[str, Any]) -> str:
    """The service under load."""
    settings, one = found["settings"], found["results"]
    clients = list(one["small"]["predict"])
    head = ["", "entities", *(f"{count} client{'s' * (count != '1')}" for count in clients)]
    head.append("processor")
    rows = [
        [
            f"`{kind}`",
            f"{settings['sizes'][size]['entities']:,}",
            *(
                f"**{each['per_second']:,.0f}** ({each['p50_ms']:,.0f} / {each['p99_ms']:,.0f} ms)"
                for each in loads.values()
            ),
            f"{loads[clients[-1]]['processor_ms']:,.1f} ms",
        ]
        for size in settings["sizes"]
        for kind, loads in one[size].items()
    ]
    every = [
        load for size in settings["sizes"] for kind in one[size].values() for load in kind.values()
    ]
    soak = one["soak"]
    busy, errors = (sum(load[what] for load in (*every, soak)) for what in ("busy", "errors"))
    memory = soak["memory_mb"]
    return (
        f"{table(head, rows)}\n\nRequests a second, how long half of them and 99 of 100 took at most, and "
        f"what one took of a processor with {clients[-1]} clients. `{settings['signature']}` untrained, on a "
        "CPU; clients on the same machine ask again as soon as "
        f"they are answered, for {settings['seconds']:g} s each. `points` are of all entities, binary; "
        f"`score` is of ten facts. Of all requests {busy:,} were answered 503 for want of time, "
        f"{errors:,} by another error. A mixture of all by {soak['clients']} clients for "
        f"{soak['seconds']:g} s: {soak['per_second']:,.0f} a second, memory {memory['first_fifth']:,.0f} MB "
        f"in the first fifth of the time and {memory['last_fifth']:,.0f} MB in the last. "
        f"Load of the machine in the minute before: {found['load_before']:.2f}. {provenance(found)}; "
        "written by `benchmarks/serve_load.py`."
    )


SECTIONS = {
    "other_levers": ("What moves accuracy and is no setting", other_levers),
    "default_accuracy": ("Without any option", default_accuracy),
    "evidence_accuracy": ("Facts in a row beside the embedding", evidence_accuracy),
    "gpu_budget": ("WN18RR in 45 seconds on a GPU", gpu_budget),
    "gpu_step": ("A training step on a GPU", gpu_step),
    "gpu_growth": ("How a step on a GPU grows", gpu_growth),
    "gpu_roofline": ("What bounds a step on a GPU", gpu_roofline),
    "large_tables": ("Tables of millions of entities", large_tables),
    "yago_part": ("At the size of YAGO3-10", yago_part),
    "gpu_accuracy": ("Kernels, precision and β: accuracy and time on a GPU", gpu_accuracy),
    "cpu_speed": ("Speed on a CPU, beside PyKEEN", cpu_speed),
    "scaling": ("Several processes", scaling),
    "load_million": ("Loading a million facts", load_million),
    "advise_million": ("Advice on a million facts", advise_million),
    "advise_geometry": ("Advised signatures beside the paper's", advise_geometry),
    "extend_experiment": ("New entities without training again", extend_experiment),
    "extend_million": ("New entities on a million facts", extend_million),
    "paths": ("Several hops", paths),
    "complete_heads": ("Facts that a graph lacks", complete_heads),
    "shown_answers": ("Probabilities of shown answers", shown_answers),
    "explain_million": ("Reasons and rules on a million facts", explain_million),
    "serve_load": ("golde serve under load", serve_load),
}


_FIX = "restore it, or run its benchmark again"
IN_README = ("default_accuracy", "gpu_budget", "cpu_speed")
"""The others are on the page alone."""


def figures(results: Path, name: str) -> dict[str, Any] | None:
    """What a benchmark wrote; None where it was not run."""
    path = results / f"{name}.json"
    return read_json(path, fix=_FIX) if path.is_file() else None


@contextmanager
def intact(results: Path, name: str) -> Iterator[None]:
    """Whatever goes wrong while a benchmark's file is shown is the file's fault, and said so.

    Checking each of the many keys of each of the many files first would only say the same.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = f"lacks {error}" if isinstance(error, KeyError) else f"cannot be shown: {error}"
        raise GoldeError(f"{results / name}.json: {why}; {_FIX}") from error


def section(results: Path, name: str) -> str:
    """The section of a benchmark, with its heading; empty where it was not run."""
    title, write = SECTIONS[name]
    found = figures(results, name)
    if found is None:
        return ""
    with intact(results, name):
        return f"## {title}\n\n{write(found)}"
