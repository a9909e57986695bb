"""What the commands of ``benchmarks/`` found, one section of a page each.

No figure is typed by hand: each comes from a file that such a command wrote into ``results/``, with its
commit, versions, machine, seed and protocol inside.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median
from typing import Any

from golde.report.large_tables import large_tables
from golde.report.tables import machine, short_commit
from golde.report.tables import markdown as table
from golde.runs.atomic import read_json


def provenance(found: dict[str, Any]) -> str:
    machine, versions = found["machine"], found["versions"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores; Python {versions['python']}, "
        f"torch {versions['torch']}; commit `{found['commit'][:10]}`"
    )


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
        "a candidate like any other. Settings chosen from the graph, parameters on validation, test "
        "ranked once; the last two columns are the MRR of the baselines. One run each, seed "
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
                f"{ours['evaluate_sample']['median']:,.0f}",
                f"{theirs['evaluate']['median']:,.0f}",
                f"**{ratio['evaluate_sample']:.1f}×**",
            ]
        )
    head = ["set, numbers", "train, ours", "PyKEEN", "ratio", "rank, ours", "PyKEEN", "ratio"]
    settings = found["results"][0]["settings"]
    versions = found["results"][0]["pykeen_versions"]
    return (
        f"{table(head, rows)}\n\nFacts a second with {settings['negatives']} negatives (one positive "
        "with its negatives, optimiser step included) and test queries a second under the filter, the "
        "same facts on both sides: our elliptic × hyperbolic product against PyKEEN "
        f"{versions['pykeen']}'s RotatE of the same size, each at its best batch size. Medians of "
        f"{settings['repeats']} repeats, {settings['threads']} threads, the two taking turns. "
        f"{sources(found['results'])}; written by `benchmarks/pykeen_speed.py`."
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
                f"{growth['median']:.0f} MB",
                f"{growth['max']:.0f} MB",
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
            f"{one['peak_growth_mb']['median']:,.0f} MB",
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
    groups: dict[tuple[str, int, str, str], dict[int, dict[str, Any]]] = {}  # each by seed
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
        mrr = {seed: run["validation"]["mrr"] for seed, run in runs.items()}
        beside = chosen.get((name, steps), {})
        changes = [mrr[seed] - beside[seed]["validation"]["mrr"] for seed in mrr if seed in beside]
        several = f" ({min(mrr.values()):.4f}–{max(mrr.values()):.4f})" if len(mrr) > 1 else ""
        rows.append(
            [
                f"{name}, {steps:,} steps",
                variant,
                f"`{signature}`",
                f"**{fmean(mrr.values()):.4f}**{several}",
                f"{fmean(changes):+.4f}" if changes and runs is not beside else "",
                f"{fmean(run['validation']['hits@10'] for run in runs.values()):.3f}",
                f"{fmean(run['seconds'] for run in runs.values()):,.0f} s",
            ]
        )
    head = ["set", "signature", "", "validation MRR", "difference", "H@10", "training"]
    seeds = ", ".join(map(str, sorted({one["seed"] for one in found["trainings"]})))
    machines = dict.fromkeys(
        f"{machine(one)}; commit `{short_commit(one['commit'])}`" for one in found["trainings"]
    )
    return (
        f"{table(head, rows)}\n\n*Chosen* is the paper's signature, or where there is none the default, "
        "*advised* what `golde advise` proposes for as many numbers, the others have all their components of "
        "one geometry. Settings are those of `configs/`, which were made for the chosen signature; so many "
        "steps and no more, last parameters; filtered MRR of the whole validation split, both sides, "
        f"realistic rank on ties. Means over seeds {seeds} with their range, and the mean difference to the "
        f"chosen signature at the same seed. {''.join(failed)}{' and '.join(machines)}; written by "
        "`benchmarks/advise_geometry.py`."
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


def sources(results: list[dict[str, Any]]) -> str:
    """Where results that were found apart come from."""
    return " and ".join(dict.fromkeys(map(provenance, results)))


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
        f"`{found['settings']['model']['signature']}`, one thread, no more than {found['peak_mb']:,} MB. "
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
            words.get(rule, "the same, by probability"),
            f"{counted['queries']:,}",
            f"{counted['seconds']:.0f} s",
            *(f"{hits:,}" for hits in counted["found"].values()),
        ]
        for name, one in sets.items()
        for rule, counted in one["test"].items()
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
        "do not hold, by score unless it says otherwise: `golde complete` with `--heads known`, `all` and "
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
        f"{settings['threads']} thread, at most {one['peak_mb']:,.0f} MB. {provenance(found)}; written by "
        "`benchmarks/explain_million.py`."
    )


def gpu(found: dict[str, Any], script: str) -> str:
    machine, versions = found["machine"], found["versions"]
    return (
        f"{machine['gpu']}; Python {versions['python']}, torch {versions['torch']}, Triton "
        f"{versions['triton']}; commit `{found['commit'][:10]}`; written by `benchmarks/{script}.py`."
    )


STEP = ["a step", "pairs a second", "memory beyond parameters and Adam"]


def steps(first: str, found: dict[str, Any]) -> str:
    """One row a form or size."""

    def row(name: str, one: dict[str, Any]) -> list[str]:
        if "ms" not in one:
            return [name, "failed" if "failed" in one else "skipped", "", ""]
        return [
            name,
            f"**{one['ms']:.2f} ms**",
            f"{one['pairs_per_second'] / 1e6:,.0f} M",
            f"{one['memory_beyond_state_mb']:,} MB",
        ]

    return table([first, *STEP], [row(name, one) for name, one in found.items()])


def gpu_step(found: dict[str, Any]) -> str:
    """A training step on a GPU, form by form, and the fused form at other sizes."""
    ranked = found["evaluation"]
    captured = [name for name, one in found["forms"].items() if one.get("captured")]
    graphs = f"As one CUDA graph: {', '.join(captured)}. " if captured else ""
    return (
        f"{steps('form', found['forms'])}\n\n"
        "![A step in every form](assets/gpu_step.png)\n\n"
        f"{steps('fused, other sizes', found['sizes'])}\n\n"
        "A whole step (draw, forward, backward, Adam unless it says otherwise) at the size the paper uses "
        "on WN18RR (40,943 entities, `P10x36 Q13x36`, 1,000 queries, 3,000 shared negatives; 200 of its own "
        "for every query in the gathered form), on a random graph of that size, with float32-accurate "
        f"products. {graphs}Filtered ranking of "
        f"{ranked['queries']:,} queries among all entities: **{ranked['seconds']:.3f} s**. Medians "
        f"by device events, of {found['settings']['repeats']} steps above. {gpu(found, 'gpu_step')}"
    )


def gpu_growth(found: dict[str, Any]) -> str:
    """How the fused step grows with one dimension at a time."""
    return (
        "![How the cost of a step grows](assets/gpu_growth.png)\n\n"
        f"{steps('fused', found['sizes'])}\n\n"
        "The step above with one dimension changed at a time; dashed, growth in proportion. "
        f"{gpu(found, 'gpu_growth').replace('`benchmarks/gpu_growth.py`', '`golde bench --sweep`')}"
    )


CEILINGS = {
    "bytes": ("memory", "B"),
    "fp32": ("FP32", ""),
    "special": ("special", ""),
    "tensor": ("TF32", ""),
}


def gpu_roofline(found: dict[str, Any]) -> str:
    """How near each kernel of a step comes to what this GPU can do."""

    def row(one: dict[str, Any]) -> list[str]:
        cells = [f"`{one['kernel']}`", f"{one['ms']:.3f} ms", f"{one['share']:.0%}"]
        if "operations" not in one:
            return [*cells, *[""] * 5]
        for kind, (_, unit) in CEILINGS.items():
            count, reached = one["operations"][kind], one["reached"][kind]
            cells.append(f"{count / 1e9:.3g} G{unit}, {reached:.0%}" if count else "")
        return [*cells, CEILINGS[one["bound"]][0] if one["bound"] else "none of these"]

    head = [
        "kernel",
        "a step",
        "share",
        *(name for name, _ in CEILINGS.values()),
        "nearest ceiling",
    ]
    parts = []
    for number, (signature, one) in enumerate(found["profiles"].items()):
        kernels = [k for k in one["kernels"] if number == 0 or "operations" in k]
        about = "" if number == 0 else f"`{signature}` alone:\n\n"
        parts.append(f"{about}{table(head, [row(k) for k in kernels])}")
    most = found["ceilings"]
    text = (
        "Kernels of a captured step of the size above by the profiler. Each cell has what the kernel has to "
        "do, counted from the algorithm (`benchmarks/operations.py`), and its share of what this GPU "
        f"reached in the same run on nothing else: {most['bytes'] / 1e12:.2f} TB/s of copying, "
        f"{most['fp32'] / 1e12:.1f} T FP32 multiply-adds a second, {most['special'] / 1e12:.2f} T special "
        f"functions, and {most['tensor'] / 1e12:.0f} T TF32 operations in Triton's product. "
        f"{gpu(found, 'gpu_roofline')}"
    )
    return "\n\n".join([*parts, text])


def gpu_accuracy(found: dict[str, Any]) -> str:
    """Validation MRR and step time, variant by variant, beside the plain form in float32."""
    groups: dict[tuple[str, int, str], dict[int, dict[str, Any]]] = {}  # each by seed
    failed = []
    for one in found["trainings"]:
        name, steps, variant, seed = (one[part] for part in ("set", "steps", "variant", "seed"))
        if "failed" in one:
            failed.append(f"{variant} on {name} with seed {seed} failed: {one['failed']}. ")
        else:
            groups.setdefault((name, steps, variant), {})[seed] = one
    rows = []
    for (name, steps, variant), runs in sorted(groups.items(), key=lambda item: item[0][:2]):
        mrr = {seed: run["validation"]["mrr"] for seed, run in runs.items()}
        plain = groups.get((name, steps, "plain-float32"), {})
        changes = [mrr[seed] - plain[seed]["validation"]["mrr"] for seed in mrr if seed in plain]
        several = f" ({min(mrr.values()):.4f}–{max(mrr.values()):.4f})" if len(mrr) > 1 else ""
        rows.append(
            [
                f"{name}, {steps:,} steps",
                variant,
                f"**{fmean(mrr.values()):.4f}**{several}",
                f"{fmean(changes):+.4f}" if changes and runs is not plain else "",
                f"{median(run['score_error'] for run in runs.values()):.0e}",
                f"{median(run['step_ms'] for run in runs.values()):.2f} ms",
                f"{fmean(run['seconds'] for run in runs.values()):,.0f} s",
            ]
        )
    head = ["set", "variant", "validation MRR", "difference", "score error", "a step", "in all"]
    seeds = sorted({one["seed"] for one in found["trainings"]})
    sources = dict.fromkeys(
        f"{one['machine']['gpu']}; Python {one['versions']['python']}, torch {one['versions']['torch']}, "
        f"Triton {one['versions']['triton']}; commit `{one['commit'][:10]}`"
        for one in found["trainings"]
    )
    return (
        f"{table(head, rows)}\n\nThe published sizes and rates, so many steps and no more, last parameters; "
        "filtered MRR of the whole validation split, both sides, realistic rank on ties, ranked in the "
        f"same variant. Means over seeds {', '.join(map(str, seeds))} with their range, and the mean "
        "difference to plain-float32 at the same seed. The score error is that of the trained model, "
        "relative to float64, as a norm over many scores. *Plain* is the step in PyTorch operations, "
        "*fused* the one in kernels, with products in three TF32 parts unless one is named; "
        "*published-beta* is plain-float32 with "
        f'`model.curvature = "scale"`. {"".join(failed)}{" and ".join(sources)}; written by '
        "`benchmarks/gpu_accuracy.py`."
    )


def gpu_budget(found: dict[str, Any]) -> str:
    """What a short training on a GPU reaches, from a cold start."""
    rows = []
    for one in found["trainings"]:
        both, training = one["test"]["both"], one["settings"]["training"]
        low, high = both["intervals"]["mrr"]
        rows.append(
            [
                f"{one['seed']}",
                f"**{one['seconds']:.1f} s**",
                f"{training['steps']:,}",
                f"{one['validation'][-1]['mrr']:.4f}",
                f"**{both['mrr']:.4f}** ({low:.3f}–{high:.3f})",
                f"{both['hits@1']:.3f}",
                f"{both['hits@10']:.3f}",
                f"{both['mr']:,.0f}",
            ]
        )
    head = ["seed", "in all", "steps", "validation MRR", "test MRR (95%)", "H@1", "H@10", "MR"]
    return (
        f"{table(head, rows)}\n\n`golde train {found['graph']} --config configs/wn18rr-45s.toml` with an "
        f"empty cache of compiled kernels, for which {found['budget_s']:.0f} s are allowed: start-up, "
        "reading, compilation, training and validation. Settings were chosen on validation; test was "
        "ranked once, filtered, both sides, realistic rank on ties, the query's own entity a candidate "
        f"like any other. {gpu(found, 'gpu_budget')}"
    )


SECTIONS = {
    "default_accuracy": ("Without any option", default_accuracy),
    "gpu_budget": ("WN18RR in 45 seconds on a GPU", gpu_budget),
    "gpu_step": ("A training step on a GPU", gpu_step),
    "gpu_growth": ("How a step on a GPU grows", gpu_growth),
    "gpu_roofline": ("What bounds a step on a GPU", gpu_roofline),
    "large_tables": ("Tables of millions of entities", large_tables),
    "gpu_accuracy": ("Kernels, precision and β: accuracy and time on a GPU", gpu_accuracy),
    "cpu_speed": ("Speed on a CPU, beside PyKEEN", cpu_speed),
    "load_million": ("Loading a million facts", load_million),
    "advise_million": ("Advice on a million facts", advise_million),
    "advise_geometry": ("Advised signatures beside the paper's", advise_geometry),
    "extend_experiment": ("New entities without training again", extend_experiment),
    "extend_million": ("New entities on a million facts", extend_million),
    "paths": ("Several hops", paths),
    "complete_heads": ("Facts that a graph lacks", complete_heads),
    "explain_million": ("Reasons and rules on a million facts", explain_million),
}


_FIX = "restore it, or run its benchmark again"
IN_README = ("default_accuracy", "gpu_budget", "cpu_speed")
"""The others are on the page alone."""


def figures(results: Path, name: str) -> dict[str, Any] | None:
    """What a benchmark wrote; None where it was not run."""
    path = results / f"{name}.json"
    return read_json(path, fix=_FIX) if path.is_file() else None


def section(results: Path, name: str) -> str:
    """The section of a benchmark, with its heading; empty where it was not run."""
    title, write = SECTIONS[name]
    found = figures(results, name)
    return f"## {title}\n\n{write(found)}" if found is not None else ""
