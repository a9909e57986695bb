"""How good are new entities that were added to a run, beside training it again with them?

    python benchmarks/extend_experiment.py umls world --data-dir FOLDER --out results/extend_experiment.json

Results of other sets that the file has are kept.

A share of the entities is held out of a graph with all facts about them, and a model is trained on the
rest. Half of the facts of each held-out entity are then given to `golde extend`, the other half is
ranked (filtered by all facts, both sides, realistic rank on ties), apart by whether the new entity is asked
about or is the answer. Rivals: training again with the same facts, the closed-form start without local steps,
and a start at the mean of all entities with and without them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from common import replaced
from torch import Tensor

import golde
from golde import Config, KnowledgeGraph
from golde.benchmark.provenance import provenance
from golde.data.vocabulary import Vocabulary
from golde.evaluation.metrics import summarise
from golde.evaluation.ranking import both_sides, rank_queries
from golde.models import Model
from golde.runs import RunFolder
from golde.runs.atomic import write_json
from golde.runs.environment import environment
from golde.training.extend import (
    default_steps,
    grow,
    local_steps,
    place_new,
    read_new_facts,
)

DATASETS = ("umls", "codex-s", "world")


class Task(NamedTuple):
    """A graph without some entities, and their facts in two halves."""

    rest: KnowledgeGraph
    valid: list[tuple[str, str, str]]  # of the rest
    given: list[tuple[str, str, str]]
    ranked: list[tuple[str, str, str]]
    everything: list[tuple[str, str, str]]


def hold_out(graph: KnowledgeGraph, share: float, seed: int) -> Task:
    """Hold out ``share`` of the entities that have four facts or more."""
    generator = torch.Generator().manual_seed(seed)
    facts = torch.cat((graph.train, graph.valid, graph.test)).unique(dim=0)
    facts = facts[torch.randperm(len(facts), generator=generator)]
    degree = torch.bincount(facts[:, [0, 2]].flatten(), minlength=len(graph.entities))
    able = (degree >= 4).nonzero()[:, 0]
    chosen = able[torch.randperm(len(able), generator=generator)[: round(share * len(able))]]
    is_new = torch.zeros(len(graph.entities), dtype=torch.bool)
    is_new[chosen] = True
    touches = is_new[facts[:, 0]] | is_new[facts[:, 2]]
    rest, about = facts[~touches], facts[touches]
    kept = torch.isin(about[:, 1], rest[:, 1])  # a relation of held-out entities alone has no map
    about = about[kept]
    first = torch.zeros(len(about), dtype=torch.bool)
    turn = dict.fromkeys(chosen.tolist(), 0)
    for i, (head, _, tail) in enumerate(about.tolist()):
        whose = head if head in turn else tail
        first[i] = turn[whose] % 2 == 0
        turn[whose] += 1
    names = [
        [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in part.tolist()]
        for part in (rest, about[first], about[~first], facts)
    ]
    known = {name for fact in (*names[0], *names[1]) for name in (fact[0], fact[2])}
    ranked = [fact for fact in names[2] if fact[0] in known and fact[2] in known]
    validation = max(1, len(rest) // 20)
    seen = {name for fact in names[0][validation:] for name in fact}
    train, valid = names[0][validation:], [f for f in names[0][:validation] if seen >= set(f)]
    train += [fact for fact in names[0][:validation] if not seen >= set(fact)]
    return Task(
        KnowledgeGraph.from_triples(train, valid, name=graph.name),
        valid,
        names[1],
        ranked,
        names[3],
    )


def figures(model: Model, graph: KnowledgeGraph, task: Task, known: Vocabulary) -> dict[str, Any]:
    """Filtered figures of the facts held back, apart by the side of the new entity, and of old facts."""
    entities, relations = graph.entities, graph.relations

    def ids(facts: list[tuple[str, str, str]]) -> Tensor:
        rows = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in facts]
        return torch.tensor(rows, dtype=torch.int64)

    there = [
        f for f in task.everything if f[0] in entities and f[2] in entities and f[1] in relations
    ]
    whole = KnowledgeGraph(entities, relations, ids(there), ids([]).view(0, 3), ids([]).view(0, 3))
    old = [fact for fact in task.valid if fact[0] in known and fact[2] in known]
    ranked = torch.cat((ids(task.ranked), ids(old)))
    entity, direction, answer = both_sides(ranked, len(relations))
    ranks = rank_queries(
        model.scorer(), entity, direction, answer, whole.known(), entities=len(entities)
    )
    about_new = torch.arange(len(entity)) % len(ranked) < len(task.ranked)
    is_new = torch.tensor([name not in known for name in entities])
    parts = {
        "all": about_new,
        "new entity asked": is_new[entity] & ~is_new[answer],
        "new entity answers": ~is_new[entity] & is_new[answer],
        "old facts": ~about_new,  # of validation, the new entities being candidates
    }
    return {
        name: summarise(ranks.realistic[which], ranks.candidates[which])
        for name, which in parts.items()
        if which.any()
    }


def measure(graph: KnowledgeGraph, settings: list[str], share: float, seed: int) -> dict[str, Any]:
    """All rivals on one graph."""
    task = hold_out(graph, share, seed)
    config = Config.load(overrides=[f"training.seed={seed}", *settings])
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        run = golde.train(task.rest, Path(folder, "run"), config, device="cpu")
        trained = time.monotonic() - began
        known, resolved = run.graph.entities, run.config
        new = read_new_facts(task.given, run.graph)
        moving = new.facts[(new.facts[:, [0, 2]] >= len(known)).any(1)]
        steps = default_steps(resolved, len(moving))

        def variant(place: bool, steps: int) -> Callable[[], Model]:
            def make() -> Model:
                model = RunFolder(run.folder.path).load_model("cpu")
                grow(model, len(new.graph.entities))
                if place:
                    place_new(model, moving, len(known))
                if steps:
                    local_steps(model, new.graph, moving, len(known), resolved, steps)
                return model

            return make

        variants = {
            "extended": variant(True, steps),
            "closed form alone": variant(True, 0),
            "mean and local steps": variant(False, steps),
            "mean alone": variant(False, 0),
        }
        for name, make in variants.items():
            began = time.monotonic()
            model = make()
            seconds = time.monotonic() - began
            result[name] = {
                "seconds": round(seconds, 2),
                "figures": figures(model, new.graph, task, known),
            }
        began = time.monotonic()
        again = KnowledgeGraph(
            new.graph.entities,
            new.graph.relations,
            new.graph.train,
            new.graph.valid,
            new.graph.test,
            name=graph.name,
        )
        retrained = golde.train(again, Path(folder, "again"), config, device="cpu")
        seconds = time.monotonic() - began
        result["trained again"] = {
            "seconds": round(seconds, 2),
            "figures": figures(retrained.model, new.graph, task, known),
        }
    return {
        "seed": seed,
        "held_out_share": share,
        "held_out_entities": len(new.graph.entities) - len(known),
        "entities": len(new.graph.entities),
        "facts": {
            "train": len(task.rest.train),
            "given": len(new.facts),
            "ranked": len(task.ranked),
        },
        "training_seconds": round(trained, 2),
        "local_steps": steps,
        "settings": resolved.model_dump(exclude_none=True),
        "results": result,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATASETS))
    parser.add_argument("--data-dir")
    parser.add_argument("--share", type=float, default=0.05, help="of entities held out")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--set", action="append", default=[], help="a setting, as in golde train")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = []
    for name in options.names:
        graph = golde.load_graph(name, data_dir=options.data_dir)
        for seed in options.seeds:
            where = provenance(["torch", "numpy"]) | {"environment": environment("cpu")}
            found = measure(graph, options.set, options.share, seed)
            results.append({"set": name, **found, **where})
            for rival, one in found["results"].items():
                mrr = ", ".join(f"{k} {v['mrr']:.3f}" for k, v in one["figures"].items())
                print(f"{name}, seed {seed}, {rival}: {mrr} ({one['seconds']} s)", flush=True)
            report = {
                "question": __doc__.splitlines()[0],
                "protocol": "filtered by all facts, both sides, realistic rank on ties",
                "results": replaced(options.out, results, "set", "seed"),
            }
            options.out.parent.mkdir(parents=True, exist_ok=True)
            write_json(options.out, report)


if __name__ == "__main__":
    main()
