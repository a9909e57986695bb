"""``golde demo``: the whole path on the graph that ships."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from golde.cli import options
from golde.cli.evaluate import print_rivals
from golde.cli.output import bar, say, say_points, say_table
from golde.cli.train import outcome, stop_message, stopping, watching
from golde.words import duration

if TYPE_CHECKING:
    from golde.data.world import Question
    from golde.inference import Run

QUESTIONS_ASKED, ANSWERS_SHOWN = 5, 5
REGIONS = ("Africa", "Americas", "Asia", "Europe", "Oceania")
PICTURE = "space.png"
LEGEND = "* true, but not a training fact   = a training fact   others: not in the graph\n"


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: golde demo --out runs/world")(demo)


def demo(
    out: Annotated[
        Path, typer.Option(metavar="RUN", help="Folder of the run; a number is added if taken.")
    ] = Path("runs/world"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
    set_: options.Set = None,
    device: options.OnDevice = options.Device.auto,
) -> None:
    """Show the whole path on a graph of the world that ships.

    It trains, evaluates, asks five questions and draws a picture.
    """
    began = time.monotonic()
    import golde
    from golde.data.world import QUESTIONS, load_world
    from golde.training.loop import StoppedError, train

    folder, graph = _free(out), load_world()
    facts, entities = f"{len(graph.train):,} facts", f"{len(graph.entities):,} countries"
    say(f"Training on world: {facts} about {entities}, cities, languages …", style="bold")
    config = golde.Config.load(overrides=[f"training.seed={seed}", *(set_ or [])])
    try:
        with watching() as watch, stopping() as should_stop:
            trained = train(
                graph, folder, config, device=device.value, watch=watch, should_stop=should_stop
            )
    except StoppedError as stopped:
        stop_message(stopped, folder)
        raise typer.Exit(130) from None
    say_points([*outcome(trained), ("space", str(trained.config().model.signature))])

    run = golde.load_run(folder, device=device.value)
    with bar("ranking") as progress:
        found = run.evaluate("test", progress=progress)
    say(f"\n{len(graph.test):,} facts held out for the test", style="bold")
    print_rivals(found)
    _print_patterns(run)
    say("Five questions", style="bold")
    for question in QUESTIONS[:QUESTIONS_ASKED]:
        _answer(run, question)
    say(LEGEND, style="dim")
    say_points(
        [
            ("picture", _draw(run)),
            ("took", duration(time.monotonic() - began)),
            ("next", f"golde predict {folder} --head Latvia --relation borders"),
            ("", f"golde evaluate {folder}"),
        ]
    )


def _free(out: Path) -> Path:
    """The folder itself, or the first of out-2, out-3 … that is not there: nothing is overwritten."""
    names = (out.with_name(f"{out.name}-{i}") for i in count(2))
    folder = out
    while folder.exists():
        folder = next(names)
    return folder


def _print_patterns(run: Run) -> None:
    """How well facts are found again that follow from the training facts by one rule."""
    from dataclasses import replace

    import torch

    from golde.data.world import load_patterns
    from golde.evaluation.evaluate import rank_triples

    patterns = load_patterns()
    # These facts are true: as answers to each other's queries they are no mistakes.
    graph = replace(run.graph, test=torch.cat([run.graph.test, *patterns.values()]))
    rows = []
    for pattern, triples in patterns.items():
        ranks = rank_triples(run.model.scorer(), graph, triples, device=run.model.device).realistic
        head, relation, tail = triples[0].tolist()
        fact = graph.entities[head], graph.relations[relation], graph.entities[tail]
        shares = [f"{(ranks <= k).double().mean():.3f}" for k in (1, 10)]
        mrr = f"{ranks.reciprocal().mean():.3f}"
        rows.append([pattern, " ".join(fact), str(len(triples)), mrr, *shares])
    say("Facts that follow from training facts by one rule", style="bold")
    say_table(["", "such as", "facts", "MRR", "H@1", "H@10"], rows, "<<>>>>")


def _answer(run: Run, question: Question) -> None:
    from rich.text import Text

    answers = run.predict(question.head, question.relation, question.tail, top=ANSWERS_SHOWN)
    line = Text("  ")
    for i, found in enumerate(answers):
        name = found.head if question.head is None else found.tail
        mark, style = {"train": (" =", ""), None: ("", "dim")}.get(
            found.known, (" *", "bold green")
        )
        line.append(", " if i else "").append(name + mark, style)
    say(question.text)
    say(line)


def _draw(run: Run) -> str:
    """Write the picture of the countries into the run folder, and say where it is."""
    from golde.analysis.picture import draw_map
    from golde.analysis.space import entity_distances, neighbour_map
    from golde.errors import MissingExtraError

    graph = run.graph
    regions = dict(_regions(run))
    facts = graph.train[:, [0, 2]].flatten().bincount(minlength=len(graph.entities)).tolist()
    countries = sorted(regions, key=lambda country: -facts[country])  # the best known first
    place = {country: i for i, country in enumerate(countries)}
    borders = graph.relations.id("borders")
    import torch

    try:
        draw_map(
            run.folder.path / PICTURE,
            neighbour_map(entity_distances(run.model, torch.tensor(countries))),
            [graph.entities[country] for country in countries],
            {name: [place[c] for c in countries if regions[c] == name] for name in REGIONS},
            [(place[h], place[t]) for h, r, t in graph.train.tolist() if r == borders],
            title="Countries in the learned space",
            caption=f"Countries that are close in {run.config.model.space} are close here (t-SNE). "
            "Colours: regions. Lines: borders among the training facts. "
            "The model was given facts, no coordinates.",
        )
    except MissingExtraError as error:
        return f"not drawn: {error}"
    return str(run.folder.path / PICTURE)


def _regions(run: Run) -> Iterator[tuple[int, str]]:
    """Every country with the region that ``located in`` leads to."""
    graph = run.graph
    facts = [fact for split in ("train", "valid", "test") for fact in graph.split(split).tolist()]
    located, capital = graph.relations.id("located in"), graph.relations.id("has capital")
    above = {head: tail for head, relation, tail in facts if relation == located}
    for country in {head for head, relation, _ in facts if relation == capital}:
        place: int | None = country
        while place is not None and graph.entities[place] not in REGIONS:
            place = above.get(place)
        if place is not None:
            yield country, graph.entities[place]
