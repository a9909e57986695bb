"""The model card: what a person should know of a trained model before using it, as Markdown.

Written when training ends. Later only the figures, which stand between two marks, are written anew: the rest
may have been edited by then. Nothing reads the card, so a run without one works as well.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from golde.config import Config
from golde.data.catalogue import SHIPPED, entries
from golde.data.world_facts import LICENCE
from golde.errors import RunError
from golde.runs.atomic import write_text
from golde.runs.folder import RunFolder

CARD = "MODEL_CARD.md"
_BEGIN = "<!-- figures: written by golde -->"
_END = "<!-- end of figures -->"
_SHOWN = ("mr", "mrr", "hits@1", "hits@3", "hits@10")
_WORST = 5

_USE = """\
- Ranking candidates for missing facts of this graph, for a person or a further check to decide on.
- Comparing geometries and models under a stated protocol.

Not meant for deciding anything about people, nor as a source of facts: an answer is a guess that fits the
others."""

_LIMITS = """\
- It knows the entities and relations of its training graph, by name, and no others.
- Some answer always comes first, also to a question that has none, or that makes no sense.
- A score is an order, not a probability; scores of different relations are not on one scale.
- Figures hold for facts drawn like those held out. Facts that are missing in earnest may be harder: they
  tend to be about entities of which little is known.
- The graph is a snapshot. What has changed since, the model does not know."""

_BIASES = """\
The model learns whatever regularities its training graph has, the unfair ones too. Where the graph has
recorded some kinds of people, places or things more often than others, or has them in stereotyped roles,
predicted links repeat this, and may do so more strongly than the facts they came from. Entities that stand
for people, such as the users of a platform, are where this does most harm. The authors of GoldE name this
risk in the impact statement of their paper, and leave it to future work to lessen it; nothing here
does. Look at predictions by group before acting on them, and do not feed them back unmarked into the graph
that the next model learns from."""


def write_card(folder: RunFolder, about: Mapping[str, Any]) -> None:
    """Write the card of a run whose ``run.json`` holds, or is about to hold, ``about``."""
    config, metrics = folder.config(), folder.metrics()
    write_text(folder.path / CARD, _card(about, config, _figures(folder, metrics), metrics))


def refresh_card(folder: RunFolder) -> None:
    """Put the figures that are stored now into the card; a card without the two marks is left alone."""
    path = folder.path / CARD
    with folder.changing_figures():
        if not path.exists():
            write_card(folder, folder.about())
            return
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # not ours any more
            return
        before, begin, rest = text.partition(_BEGIN)
        _, end, after = rest.partition(_END)
        if begin and end:
            write_text(path, before + _figures(folder, folder.metrics()) + after)


def calibration_words(found: Mapping[str, Any]) -> str:
    """How the probabilities of a run were fitted: what ``calibration.json`` says of it."""
    try:
        facts, prior = sum(found["facts"].values()), found["prior"]
        to = "on answers to" if prior is None else f"prior {prior:g}, on"
        return f"{found['method']}, {to} {facts:,} validation facts"
    except (KeyError, TypeError, AttributeError, ValueError):
        raise RunError("calibration.json: does not hold a calibration; calibrate again") from None


def _card(
    about: Mapping[str, Any], config: Config, figures: str, metrics: Mapping[str, Any]
) -> str:
    kind = "GoldE" if config.model.kind == "golde" else config.model.kind
    relations = next((list(entry["relations"]) for entry in metrics.values()), [])
    fit = [name for name in relations if "```" not in name and name.isprintable()]
    relation = shlex.quote(fit[0]) if fit else "RELATION"
    chosen = f"{about['chosen_step']:,} of {about['steps']:,} steps"
    return f"""\
# {kind} on {" ".join(about["graph"].split())}

A model for completing a knowledge graph: given two of head, relation and tail, it ranks what the third may
be. {_space(config)}

## The graph

{_table(["", ""], _graph_rows(about))}

## Figures

{figures}

## Intended use

{_USE}

## Limits

{_LIMITS}

## Biases

{_BIASES}

## How to use it

With `RUN` the folder that this card is in:

```bash
golde predict RUN --head NAME --relation {relation}
golde complete RUN --top 100
```

## Where it comes from

{_table(["", ""], [["seed", str(config.training.seed)], ["parameters of step", chosen], *_origin(about)])}

```toml
{config.to_toml().strip()}
```
"""


def _space(config: Config) -> str:
    model = config.model
    if model.kind != "golde":
        return f"It is a baseline, {model.space}, trained and ranked like GoldE."
    own = "with maps of their own for head queries" if model.reciprocal else "with one map each"
    return (
        f"Entities are points of the space `{model.space}` (E Euclidean, P elliptic, Q hyperbolic "
        f"components), relations are isometries of it, {own}, and a score is minus a distance."
    )


def _graph_rows(about: Mapping[str, Any]) -> list[list[str]]:
    facts = ", ".join(f"{about[split]:,} {split}" for split in ("train", "valid", "test"))
    return [
        ["name", _code(about["graph"])],
        ["facts", facts],
        ["entities", f"{about['entities']:,}"],
        ["relations", f"{about['relations']:,}"],
        ["licence", _licence(about) or "not known here; see where the graph comes from"],
        ["SHA-256 of its content", _code(about["digest"])],
    ]


def _licence(about: Mapping[str, Any]) -> str | None:
    """What the catalogue states, if the graph is called and sized like one of its sets."""
    name = about["graph"]
    if name == SHIPPED:
        return LICENCE
    entry = entries().get(name)
    if entry is None or any(
        getattr(entry.counts, what) != about[what] for what in ("entities", "relations")
    ):
        return None
    return f"{entry.licence} (as the catalogue of named sets has it)"


def _figures(folder: RunFolder, metrics: Mapping[str, Any]) -> str:
    """The part between the marks: figures, their protocol, weak relations, and whether it is calibrated."""
    parts = [_ranked(metrics), _evidence(folder), _probabilities(folder)]
    return "\n".join([_BEGIN, "\n\n".join(part for part in parts if part), _END])


def _evidence(folder: RunFolder) -> str:
    """What counts beside the embedding, if anything does."""
    found = folder.gathered()
    if found is None or not any(found[one] for one in ("scale", "joined", "unmentioned")):
        return ""
    return (
        "Beside the embedding counts what training facts in a row say for or against an answer "
        "(`evidence.safetensors`)."
    )


def _probabilities(folder: RunFolder) -> str:
    try:
        found = folder.calibration()
        words = "" if found is None else calibration_words(found)
    except RunError:  # of other parameters, or not to be read: then answers have none
        found = None
    if found is None:
        return "Not calibrated: its answers have scores and no probabilities until `golde calibrate RUN`."
    if found["prior"] is None:
        return (
            f"Calibrated ({words}): a probability is that of an answer; of answers with its score to "
            "questions about validation facts, so many were facts."
        )
    return (
        f"Calibrated ({words}): a probability is that of a claim which was, before its "
        "score was seen, a fact with the chance `prior`."
    )


def _ranked(metrics: Mapping[str, Any]) -> str:
    """Every stored figure, its protocol, and where the model is weak."""
    if not metrics:
        return "None yet: `golde evaluate RUN` ranks what was held out."
    names = [n for n in _SHOWN if all(n in entry["metrics"]["both"] for entry in metrics.values())]
    rows = []
    for key, entry in metrics.items():
        protocol, both = entry["protocol"], entry["metrics"]["both"]
        there = protocol.get("split_triples", protocol["triples"])
        of = "" if there == protocol["triples"] else f" of {there:,}"
        figures = [f"{both[n]:,.1f}" if n == "mr" else f"{both[n]:.3f}" for n in names]
        rows.append([key, f"{protocol['triples']:,}{of}", *figures])
    heads = [name.upper() if "@" not in name else name.replace("hits", "H") for name in names]
    weakest = next(key for key in ("test", "valid", "valid+sample", *metrics) if key in metrics)
    return "\n\n".join(
        [
            _table(["ranked", "facts", *heads], rows),
            _protocol(metrics.values()),
            f"Where it is weakest: the relations with the lowest MRR on {weakest}. A figure over few "
            "facts says little.",
            _table(
                ["relation", "facts", "MRR", "MRR heads", "MRR tails"], _weakest(metrics[weakest])
            ),
        ]
    )


def _protocol(found: Iterable[Mapping[str, Any]]) -> str:
    protocols = [entry["protocol"] for entry in found]
    words = (
        f"Filtered ranking among all {protocols[0]['candidates']:,} entities, heads and tails: other known "
        f"facts of {', '.join(protocols[0]['filter'])} are no candidates, a tie gets the mean of the ranks "
        "it could have."
    )
    if any(protocol["self_filter"] for protocol in protocols):
        words += (
            " `self-filter` leaves the query's own entity out of the candidates, which flatters: it is not "
            "the standard protocol."
        )
    if any(protocol["triples"] < protocol.get("split_triples", 0) for protocol in protocols):
        words += " `sample` is a seeded sample of the split."
    return words + " Validation facts chose the parameters; test facts took no part in training."


def _weakest(entry: Mapping[str, Any]) -> list[list[str]]:
    ordered = sorted(entry["relations"].items(), key=lambda item: float(item[1]["mrr"]))
    return [
        [
            _code(name),
            f"{block['count'] // 2:,}",
            *(f"{part['mrr']:.3f}" for part in (block, block["head"], block["tail"])),
        ]
        for name, block in ordered[:_WORST]
    ]


def _origin(about: Mapping[str, Any]) -> list[list[str]]:
    rows = [["commit", _code(about.get("commit", "not recorded"))]]
    for i, machine in enumerate([about["environment"], *about.get("resumed_in", [])]):
        versions = [
            f"{n} {machine[n]}" for n in ("golde", "torch", "python", "numpy") if n in machine
        ]
        threads = machine.get("threads", 1)
        where = (
            machine.get("gpu") or f"{machine.get('device')}, {threads} thread{'s' * (threads != 1)}"
        )
        rows += [
            ["versions" if not i else "gone on with", ", ".join(versions)],
            ["machine" if not i else "gone on with on", f"{where}; {machine.get('platform')}"],
        ]
    for added in about.get("extensions", []):
        sizes = f"{added['new_entities']:,} entities, {added['new_facts']:,} facts"
        rows.append(["extended without training", f"{sizes}, {added['steps']:,} local steps"])
    return rows


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:" if len(head) > 2 else "---"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _code(text: str) -> str:
    """A name as it is, whatever signs are in it: between more backticks than it has in a row."""
    text = " ".join(text.splitlines()).replace("|", "\\|")
    fence = "`" * (1 + max((len(ticks) for ticks in re.findall("`+", text)), default=0))
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return fence + padding + text + padding + fence
