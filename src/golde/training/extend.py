"""New entities and facts in a trained run, without training it again.

A new entity starts where its neighbours' relations lead: at the mean of ``log ∘ G_d ∘ exp`` of the rows
beside it, taken outwards from the entities that were trained. A few steps of the run's own loss on the new
facts then move the rows and biases of new entities, and nothing else: what was trained stays as it is, bit
for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from golde.config import Config
from golde.data.columns import Columns
from golde.data.files import read_error
from golde.data.graph import KnowledgeGraph, Named, drop_duplicates
from golde.data.numbering import Ids, NameIndex
from golde.data.readers import fact_error, read_facts
from golde.data.text import header_hint
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError, RunError
from golde.geometry import gather
from golde.models import Model
from golde.progress import Progress, silent
from golde.runs import RunFolder
from golde.runs.card import write_card
from golde.runs.environment import environment
from golde.training.dense_adam import dense_adam
from golde.training.loop import DivergedError, pick_device
from golde.training.regularisers import add_pull, pull
from golde.training.sampling import Sampler, directed
from golde.training.schedule import learning_rate
from golde.training.step import step_loss

PASSES, FEWEST_STEPS = 20, 100
"""Local steps unless told otherwise: as many as ask every new fact so often, and so many at least."""

_TRAIN_AGAIN = "a new relation has no map: leave its facts out, or train again with them"
_ROWS_AT_ONCE = 1 << 14  # rows transported at a time
_OF_THE_GRAPH = {
    "format",
    "graph",
    "digest",
    "entities",
    "relations",
    "train",
    "valid",
    "test",
}  # entries of run.json that are not taken over
_NAMES_KEPT = 10  # of entities without a way to a known one


class NewFacts(NamedTuple):
    """What a source holds that a graph does not."""

    graph: KnowledgeGraph  # new entities after the old ones, new facts at the end of train
    facts: Tensor  # (n, 3), those that were not known
    repeated: int  # rows given twice, or in the graph already
    notes: tuple[str, ...]


class Placement(NamedTuple):
    """How new entities got their first rows."""

    sweeps: int  # from the known entities outwards
    adrift: Tensor  # (a,) ids without a way to a known entity: they stay at the mean of all


def extend(
    run: str | Path,
    facts: str | Path | Named,
    out: str | Path,
    *,
    steps: int | None = None,
    columns: str | None = None,
    device: str = "auto",
    progress: Progress = silent,
) -> RunFolder:
    """Write a new run folder ``out``: that of ``run`` with the new entities and facts of ``facts``.

    ``facts`` is a file in any format that ``load_graph`` reads, or (head, relation, tail) names. ``steps``
    is the number of local steps, 0 for none; unset, it follows from the number of facts. What was done
    is in ``run.json`` under ``extensions``.
    """
    old, new, place = RunFolder(run), RunFolder(out), pick_device(device)
    if steps is not None and steps < 0:
        raise GoldeError(f"steps is {steps}; make 0 for the closed-form start alone, or more")
    model, config, graph = old.load_model(place, evidence=False), old.config(), old.graph()
    if config.training.entity_table == "host":
        place = torch.device("cpu")  # where the table is: local steps are few
        model.to(place)
    evidence, gathered = old.evidence(), old.gathered()
    model.refuse_divergence()
    with new.alone():
        if new.exists() or new.occupied():
            raise RunError(f"{new.path}: holds something already; choose another --out")
        new.remove_leftovers()
        found = read_new_facts(facts, graph, columns)
        began, known = time.monotonic(), len(graph.entities)
        moving = found.facts[(found.facts[:, [0, 2]] >= known).any(1)]
        grow(model, len(found.graph.entities))
        placement = place_new(model, moving, known)
        if steps is None:
            steps = default_steps(config, len(moving))
        losses = []
        if steps and len(moving):
            losses = local_steps(model, found.graph, moving, known, config, steps, progress)
        names = found.graph.entities
        about = old.about()
        record = {
            "from": str(old.path),
            "from_digest": about["digest"],
            "facts_from": str(facts) if isinstance(facts, str | Path) else "names",
            "new_entities": len(names) - known,
            "new_facts": len(found.facts),
            "between_known": len(found.facts) - len(moving),
            "repeated": found.repeated,
            "sweeps": placement.sweeps,
            "adrift": len(placement.adrift),
            "adrift_names": [names[i] for i in placement.adrift[:_NAMES_KEPT].tolist()],
            "steps": len(losses),
            "losses": [losses[0], losses[-1]] if losses else [],
            "seconds": round(time.monotonic() - began, 2),
            "notes": list(found.notes),
            "environment": environment(place),
        }
        before = about.get("extensions", [])
        kept = {key: value for key, value in about.items() if key not in _OF_THE_GRAPH}
        kept["extensions"] = [*before, record]
        new.create(config, found.graph, kept, model)
        if evidence is not None and gathered is not None:
            new.save_evidence(
                evidence, gathered
            )  # its weights; the facts are those of the new graph
        write_card(new, new.about())
    return new


def read_new_facts(
    source: str | Path | Named, graph: KnowledgeGraph, columns: str | None = None
) -> NewFacts:
    """The facts of a source beside those of a graph; each relation must be one of the graph's."""
    index = NameIndex()
    index.entities.number(graph.entities.names)
    index.relations.number(graph.relations.names)
    notes: tuple[str, ...] = ()
    if isinstance(source, str | Path):
        given, notes = _read_file(Path(source), columns, index, graph.relations)
    else:
        given = _number(source, index, graph.relations)
    rows, repeated = drop_duplicates(given)
    facts = torch.from_numpy(rows)
    old = (facts[:, [0, 2]] < len(graph.entities)).all(1)
    known = torch.zeros(len(facts), dtype=torch.bool)
    known[old] = graph.known().contains(*facts[old].unbind(1))
    facts = facts[~known]
    if not len(facts):
        where = source if isinstance(source, str | Path) else "facts"
        raise GoldeError(
            f"{where}: every fact is in the run's graph already; there is nothing to add"
        )
    extended = KnowledgeGraph(
        Vocabulary(index.entities.names(), "entity"),
        graph.relations,
        torch.cat((graph.train, facts)),
        graph.valid,
        graph.test,
        name=graph.name,
    )
    return NewFacts(extended, facts, repeated + int(known.sum()), notes)


def grow(model: Model, entities: int) -> None:
    """Give a model rows and biases for ``entities`` in all; new ones hold the mean of the old."""
    tables = [name for name in ("entity", "query_bias", "answer_bias") if hasattr(model, name)]
    for name in tables:
        table = getattr(model, name).detach()
        mean = table.mean(0, keepdim=True)
        more = mean.expand(entities - len(table), *table.shape[1:])
        setattr(model, name, nn.Parameter(torch.cat((table, more))))


@torch.no_grad()
def place_new(model: Model, facts: Tensor, known: int) -> Placement:
    """``e_a = mean over (e, d, a) of transport(e_e, d)`` for every new a, in sweeps outwards.

    ``facts`` (n, 3) are those of new entities, ids from ``known`` on. A sweep places the entities beside
    those that are placed already, from all of these at once.
    """
    asked = directed(facts, model.relations).to(model.entity.device)  # (3, 2n)
    placed = torch.arange(model.entities, device=model.entity.device) < known
    sweeps = 0
    while True:
        entity, direction, answer = asked
        leads = placed[entity] & ~placed[answer]
        if not leads.any():
            return Placement(sweeps, placed.logical_not().nonzero()[:, 0].cpu())
        sums = torch.zeros_like(model.entity[known:])
        counts = sums.new_zeros(len(sums), 1)
        for part in asked[:, leads].split(_ROWS_AT_ONCE, 1):
            entity, direction, answer = part
            moved = model.transport(gather(model.entity, entity), direction)
            sums.index_add_(0, answer - known, moved)
            counts.index_add_(0, answer - known, torch.ones_like(moved[:, :1]))
        reached = counts[:, 0] > 0
        model.entity[known:][reached] = (sums / counts.clamp(min=1))[reached]
        placed[known:] |= reached
        sweeps += 1


def default_steps(config: Config, facts: int) -> int:
    """Local steps for so many facts of new entities."""
    batch = min(config.training.batch_size or 1, 2 * facts)
    return max(FEWEST_STEPS, math.ceil(PASSES * 2 * facts / batch)) if facts else 0


def local_steps(
    model: Model,
    graph: KnowledgeGraph,
    facts: Tensor,
    known: int,
    config: Config,
    steps: int,
    progress: Progress = silent,
) -> list[float]:
    """Steps of the run's loss on ``facts`` that move what belongs to ids from ``known`` on; their losses.

    Negatives are drawn from all entities and every training fact of ``graph`` is masked, as in training.
    """
    settings, table = config.training, model.entity
    assert settings.batch_size is not None
    assert settings.negatives is not None
    assert settings.learning_rate is not None
    sampler = Sampler(
        graph.train,
        len(graph.entities),
        len(graph.relations),
        asked=facts,
        batch_size=settings.batch_size,
        negatives=settings.negatives,
        answers=settings.answers_as_negatives,
        subsampling=settings.subsampling,
        seed=settings.seed,
        device=table.device,
    )
    table.requires_grad_(False)
    new = table[known:].clone().requires_grad_()
    biases = {}
    if model.config.bias:
        biases = {"query_bias": model.query_bias, "answer_bias": model.answer_bias}
    adam = dense_adam({"entity": new, **biases}, settings, table.device, capture=False)
    losses = []
    for step in range(steps):
        rate = learning_rate(step, steps=steps, peak=settings.learning_rate, warmup=settings.warmup)
        adam.advance(rate)
        adam.zero_grad()
        model.zero_grad()
        draw = sampler.seek(step).draw()
        is_new = (draw.entities >= known).unsqueeze(1)
        moving = gather(new, (draw.entities - known).clamp(min=0))
        rows = torch.where(is_new, moving, gather(table, draw.entities))
        loss = step_loss(model, rows, draw, settings)
        loss.backward()
        for bias in biases.values():
            assert bias.grad is not None
            bias.grad[:known] = 0  # Adam then leaves them as they are, to the last bit
        norm, scale, found_inf = adam.clip(new.new_empty(0))
        if not torch.isfinite(norm):
            raise DivergedError(
                f"the gradient became {norm.item()} at local step {step + 1}; make fewer --steps"
            )
        assert new.grad is not None
        add_pull(new.grad, new.detach(), pull(settings, len(table)) * scale)
        adam.step(scale, found_inf)
        losses.append(loss.item())
        progress(step + 1, steps)
    with torch.no_grad():
        table[known:] = new
    return losses


def _read_file(
    path: Path, columns: str | None, index: NameIndex, relations: Vocabulary
) -> tuple[Ids, tuple[str, ...]]:
    wanted = None if columns is None else Columns.parse(columns)
    try:
        file = read_facts(path, wanted, index, lambda done: None)
    except OSError as error:
        raise read_error(path, error) from error
    strange = file.triples[:, 1] >= len(relations)
    if strange.any():
        row = int(strange.argmax())
        name = next(index.relations.names(int(file.triples[row, 1])))
        fix = _TRAIN_AGAIN
        if row == 0 and wanted is None and file.lines is not None:
            entities = list(index.entities.names())
            head, _, tail = file.triples[0].tolist()
            fix = f"{header_hint((entities[head], name, entities[tail]))}; {_TRAIN_AGAIN}"
        try:
            relations.id(name)
        except GoldeError as error:
            raise fact_error(file, row, index, str(error), fix) from None
    return file.triples, tuple(file.notes)


def _number(facts: Iterable[tuple[str, str, str]], index: NameIndex, relations: Vocabulary) -> Ids:
    """Facts by name as ids."""
    rows = list(facts)
    for i, fact in enumerate(rows):
        if len(fact) != 3 or not all(isinstance(name, str) and name.strip() for name in fact):
            raise GoldeError(f"facts[{i}] is {fact!r}; a fact is (head, relation, tail)")
        try:
            relations.id(fact[1])
        except GoldeError as error:
            raise GoldeError(f"facts[{i}]: {error} ({_TRAIN_AGAIN})") from None
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return index.number(*columns)
