"""Sections on advice, evidence, new entities, several hops, missing facts and reasons."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from golde.report import seeds
from golde.report.seeds import BySeed
from golde.report.tables import machine, provenance, short_commit, sources
from golde.report.tables import markdown as table


def evidence_accuracy(found: dict[str, Any]) -> str:
    """Facts in a row beside the embedding, by how many."""

    def mean(runs: list[dict[str, Any]], *keys: str) -> float:
        values = []
        for one in runs:
            for key in keys:
                one = one[key]
            values.append(float(one["mrr"]))
        return fmean(values)

    rows = []
    for name, runs in found["results"].items():
        hops = [
            f"{mean(runs, 'hops', n, 'validation'):.3f}"
            if all(n in r["hops"] for r in runs)
            else "–"
            for n in ("1", "2", "3")
        ]
        rows.append(
            [
                name,
                f"{mean(runs, 'alone', 'validation'):.3f}",
                *hops,
                " and ".join(dict.fromkeys(str(one["best"]) for one in runs)),
                f"{mean(runs, 'alone', 'test'):.3f}",
                f"**{mean(runs, 'test'):.3f}**",
            ]
        )
    head = [
        "set",
        "alone, validation",
        "1 hop",
        "2",
        "3",
        "best",
        "alone, test",
        "with evidence, test",
    ]
    seeds = sorted({one["seed"] for runs in found["results"].values() for one in runs})
    return (
        f"{table(head, rows)}\n\nMRR of runs with no other option set, means over seeds "
        f"{', '.join(map(str, seeds))}: the embedding alone, and with evidence of up to so many facts in a "
        "row, whose weight is chosen on the same validation facts. The best of them there was then ranked on "
        "test, once; earlier versions of the file, if its history has any, ranked it too. A dash: more walks "
        "than are worth waiting for. "
        f"{provenance(found)}; written by `benchmarks/evidence_accuracy.py`."
    )


def advise_million(found: dict[str, Any]) -> str:
    """A signature for about a million facts."""
    about = {
        "random_graph": "random facts",
        "tree": "a tree with rings of siblings",
        "cycles": "rings",
    }
    rows = [
        [
            about[name],
            f"{one['facts']:,}",
            f"{one['entities']:,}",
            f"{one['relations']}",
            f"**{one['cpu_s']['median']:.0f} s**",
            f"{one['wall_s']['median']:.0f} s",
            f"{one['peak_growth_mb']['median']:,.0f} MiB",
            f"`{one['signature']}`",
        ]
        for name, one in found["results"].items()
    ]
    head = ["graph", "facts", "entities", "relations", "processor", "in all", "memory", "proposal"]
    settings = found["settings"]
    return (
        f"{table(head, rows)}\n\nThe measuring of `golde advise`, {settings['numbers']} numbers an entity, "
        f"on graphs of `golde.data.synthetic` (seed {settings['seed']}); memory is how much the peak of the "
        f"process grew beyond the graph. Medians of {settings['repeats']} repeats, each in a process of its "
        "own, on one thread of a machine that did other work too: hence the difference between the time of "
        f"the processor and that of the clock. {provenance(found)}; written by "
        "`benchmarks/advise_million.py`."
    )


def advise_geometry(found: dict[str, Any]) -> str:
    """Validation MRR of the proposed signature beside those of others with as many numbers."""
    groups: dict[tuple[str, int, str, str], BySeed] = {}
    failed = []
    for one in found["trainings"]:
        if "failed" in one:
            what = f"{one['signature']} on {one['set']} with seed {one['seed']}"
            failed.append(f"{what} failed: {one['failed']}. ")
        else:
            key = one["set"], one["steps"], one["variant"], one["signature"]
            groups.setdefault(key, {})[one["seed"]] = one
    chosen = {key[:2]: runs for key, runs in groups.items() if key[2] == "chosen"}
    rows = []
    for (name, steps, variant, signature), runs in sorted(
        groups.items(), key=lambda item: item[0][:2]
    ):
        rows.append(
            [
                f"{name}, {steps:,} steps",
                variant,
                f"`{signature}`",
                str(len(runs)),
                seeds.with_range(runs),
                seeds.difference(runs, chosen.get((name, steps), {})),
                f"{seeds.mean(runs, 'hits@10'):.3f}",
                f"{fmean(run['seconds'] for run in runs.values()):,.0f} s",
            ]
        )
    head = ["set", "signature", "", "seeds", "validation MRR", "difference", "H@10", "training"]
    machines = dict.fromkeys(
        f"{machine(one)}; commit `{short_commit(one['commit'])}`" for one in found["trainings"]
    )
    return (
        f"{table(head, rows)}\n\n*Chosen* is the paper's signature, or where there is none the default, "
        "*advised* what `golde advise` proposes for as many numbers, the others have all their components of "
        "one geometry. Settings are those of `configs/` as of this commit, the weight of elliptic components "
        "in the sum the paper's; so many steps and no more, last parameters; filtered MRR of the whole "
        "validation split, both sides, realistic rank on ties. Means over seeds with their range, and the "
        "mean difference to the chosen signature at the same seeds, that of each in brackets. "
        f"{''.join(failed)}{' and '.join(machines)}; written by `benchmarks/advise_geometry.py`."
    )


def extend_experiment(found: dict[str, Any]) -> str:
    """New entities added to a run, beside training it again with them."""
    head = ["set", "new entities", "all", "new entity asked", "new entity answers", "old facts"]
    rows = [
        [one["set"], way, *(f"{found_by['figures'][column]['mrr']:.3f}" for column in head[2:])]
        for one in found["results"]
        for way, found_by in one["results"].items()
    ]
    sizes = "; ".join(
        f"{one['set']}: {trained(one)}, {one['held_out_entities']} new entities of {one['entities']:,} "
        f"({one['held_out_share']:.0%}), {one['facts']['given']:,} facts given, "
        f"{one['facts']['ranked']:,} ranked"
        for one in found["results"]
    )
    return (
        f"{table(head, rows)}\n\nMRR, {found['protocol']}. Some entities are held out with all their facts, "
        "the rest is trained, half of the facts held out are given, and the other half is ranked; the last "
        f"column has validation facts of old entities. {sizes}. {sources(found['results'])}; written by "
        "`benchmarks/extend_experiment.py`."
    )


def trained(one: dict[str, Any]) -> str:
    """What a training of a short measurement was, in words."""
    settings = one["settings"]
    return f"`{settings['model']['signature']}`, {settings['training']['steps']:,} steps, seed {one['seed']}"


def extend_million(found: dict[str, Any]) -> str:
    """Adding entities to a run on a million facts."""
    rows = [
        [
            f"{one['new_entities']:,}",
            f"{one['new_facts']:,}",
            f"{one['local_steps']:,}",
            f"**{one['cpu_seconds']:.1f} s**",
        ]
        for one in found["results"]
    ]
    hops = ", ".join(f"by {way} {s:.2f} s" for way, s in found["two_hops_cpu_seconds"].items())
    head = ["new entities", "new facts", "local steps", "processor"]
    return (
        f"{table(head, rows)}\n\n`golde extend` from opening the run to the last file, "
        f"{found['facts']:,} facts, {found['entities']:,} entities, {found['relations']:,} relations, "
        f"`{found['settings']['model']['signature']}`, one thread, no more than {found['peak_mb']:,} MiB. "
        f"One query of two hops there: {hops}. {provenance(found)}; written by "
        "`benchmarks/extend_million.py`."
    )


def paths(found: dict[str, Any]) -> str:
    """Answers several hops away."""
    results = found["results"]
    ways = list(dict.fromkeys(way for one in results for way in one["results"]))
    ways.sort(key=lambda way: way == "frequency in the last hop")  # a rival, after all beams
    rows = []
    for one in results:
        figures = {way: by["figures"] for way, by in one["results"].items()}
        mrr = [f"{figures[way]['mrr']:.3f}" if way in figures else "" for way in ways]
        chance = next(iter(figures.values()))["chance_mrr"]
        rows.append([one["set"], f"{one['hops']}", *mrr, f"{chance:.3f}"])
    settings = dict.fromkeys(
        f"{one['set']}: {one['queries']} answers, {trained(one)}" for one in results
    )
    head = ["set", "hops", *ways, "chance"]
    return (
        f"{table(head, rows)}\n\nMRR; {found['protocol']}. No path of training facts leads to such an "
        "answer. Frequency ranks entities by how often they answer the last relation in training. "
        f"{'; '.join(settings)}.\n\n{path_probabilities(results)}\n\n{sources(results)}; written by "
        "`benchmarks/paths.py`."
    )


def path_probabilities(results: list[dict[str, Any]]) -> str:
    """How reliable probabilities of paths are, beside what they could have been."""
    judged = [one for one in results if one["probabilities"]["paths"]]
    ways = dict.fromkeys(way for one in judged for way in one["probabilities"]["results"])
    rows = [
        [
            one["set"],
            f"{one['hops']}",
            *(f"{by['ece']:.3f}, {by['brier']:.3f}" for by in found["results"].values()),
            f"{found['paths']} of {found['asked']}",
            f"{found['right_ends']:,}",
            f"{found['wrong_ends']:,}",
        ]
        for one, found in ((one, one["probabilities"]) for one in judged)
    ]
    head = ["set", "hops", *ways, "paths", "right ends", "wrong ends"]
    return (
        f"{table(head, rows)}\n\nECE and Brier score of probabilities that were fitted to each path on "
        "validation facts, on ends that take a test fact and wrong ends of the right kind, both weighing "
        "the same. The product is that of the calibrated probabilities of the hops of the beam's best path; "
        "who says one half of everything is never wrong in the mean, and knows nothing. Asked for are the "
        "most common paths of such queries; those with too few ends to fit to have no probabilities."
    )


def complete_heads(found: dict[str, Any]) -> str:
    """Held-out facts among the most plausible missing ones, by whom is asked."""
    sets, chosen = found["results"], found["chosen"]
    best = list(next(iter(sets.values()))["test"][chosen]["found"])
    words = {
        "known": "heads that the relation has",
        "all": "all entities",
        chosen: "**the right kind that lacks an answer**",
    }
    rows = [
        [
            f"{name} ({one['facts']['test']:,})",
            word,
            f"{one['test'][rule]['queries']:,}",
            f"{one['test'][rule]['seconds']:.0f} s",
            *(f"{hits:,}" for hits in one["test"][rule]["found"].values()),
        ]
        for name, one in sets.items()
        for rule, word in words.items()
    ]
    head = ["set (test facts)", "asked", "queries", "time", *(f"of {int(k):,}" for k in best)]
    by = str(found["chosen_by"])
    tried = [
        [rule, *(f"{one['validation'][rule]['found'][by]:,}" for one in sets.values())]
        for rule in next(iter(sets.values()))["validation"]
    ]
    (steps,) = {one["settings"]["training"]["steps"] for one in sets.values()}
    return (
        f"{table(head, rows)}\n\nTest facts among the most plausible ones that training and validation facts "
        "do not hold, by score: `golde complete` with `--heads known`, `all` and "
        f"`kind`, the default. Its s and t ({chosen}) were chosen by validation facts among the best "
        f"{found['chosen_by']:,} beside training facts alone. That s is at most one half was "
        "settled after a first look at these counts, and not by them: with more, a relation that half of its "
        "kind lack could never be filled:\n\n"
        f"{table(['asked', *sets], tried)}\n\n{steps:,} steps of training, seed {found['seed']}; one thread "
        f"of a machine that did other work too. {provenance(found)}; written by "
        "`benchmarks/complete_heads.py`."
    )


def explain_million(found: dict[str, Any]) -> str:
    """Reasons, rules and the learned geometry on a million facts."""
    settings, one = found["settings"], found["results"]
    rules = sum(one[part]["median"] for part in ("index_s", "candidates_s", "judge_s"))
    rows = [
        ["`golde explain`, one fact", f"**{one['explain_s']['median']:.1f} s**"],
        ["`golde rules`, all relations", f"**{rules:.1f} s**"],
        ["`golde geometry`, all relations", f"**{one['geometry_s']['median']:.1f} s**"],
    ]
    return (
        f"{table(['command', 'processor'], rows)}\n\nWithout opening the run; {settings['facts']:,} facts, "
        f"{settings['entities']:,} entities, {settings['relations']:,} relations, `{settings['signature']}` "
        f"untrained. {one['planted_found']} of {one['planted_rules']} planted rules are among the "
        f"{one['candidates']:,} candidates that are judged. Medians of {settings['repeats']} repeats, "
        f"{settings['threads']} thread, at most {one['peak_mb']:,.0f} MiB. {provenance(found)}; written by "
        "`benchmarks/explain_million.py`."
    )
