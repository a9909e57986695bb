"""``golde explain`` and ``rules``: why a run finds a fact plausible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from golde.cli import options
from golde.cli.output import bar, note, say, say_json, say_points, say_table
from golde.words import probability

if TYPE_CHECKING:
    from golde.analysis.explain import Contribution, Explanation, Fact, NearFact
    from golde.analysis.rules import JudgedRule

COMPONENTS_SHOWN = 3
RULES_SHOWN = 30
RULES_KEY = (
    "Confidence: where the left side is in training, how often the right side is too.",
    "PCA: the same, leaving out entities with no fact of the relation on the right:",
    "  they are gaps, not exceptions.  Of: how often the left side is in training.",
    "Error: how far the learned maps miss it, from 0 to about 1 for a random entity.",
)


def register(app: typer.Typer) -> None:
    fact = "--head Latvia --relation borders --tail Lithuania"
    app.command(epilog=f"Example: golde explain runs/world {fact}")(explain)
    app.command(epilog='Example: golde rules runs/world --relation "located in"')(rules)


def explain(
    run: options.Run,
    head: Annotated[str, typer.Option(help="The entity the fact is about.")],
    relation: Annotated[str, typer.Option(help="The relation.")],
    tail: Annotated[str, typer.Option(help="The entity at the other end.")],
    top: Annotated[int, typer.Option(min=1, help="Facts and rules of each kind to show.")] = 5,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """Say why a fact is plausible: rules, nearby facts, components of the space.

    The score is that of the forward direction, which asks for tails.
    """
    import golde
    from golde.analysis.explain import explain as explain_fact

    opened = golde.load_run(run, device=device.value)
    for message in opened.notes:
        note(f"note: {message}")
    fact = head, relation, tail
    chance = None if opened.calibration is None else opened.probability([fact])[0]
    with bar("judging rules") as progress:
        found = explain_fact(
            opened.model, opened.graph, *fact, top=top, probability=chance, progress=progress
        )
    if json:
        say_json(found.as_dict())
    else:
        _print(found, top)


def rules(
    run: options.Run,
    relation: Annotated[
        list[str] | None,
        typer.Option(help="Only rules that imply this relation; may be given several times."),
    ] = None,
    device: options.OnDevice = options.Device.auto,
    json: options.Json = False,
) -> None:
    """List the rules between relations that both the facts and the learned maps bear out."""
    import golde
    from golde.analysis.links import Links
    from golde.analysis.rules import find_rules

    opened = golde.load_run(run, device=device.value)
    names = opened.graph.relations
    heads = None if relation is None else sorted({names.id(name) for name in relation})
    with bar("judging rules") as progress:
        found = find_rules(opened.model, Links(opened.graph), heads, progress=progress)
    if json:
        say_json([_rule(one, names) for one in found])
    else:
        _print_rules(found, names)


def _rule(found: JudgedRule, names: Sequence[str]) -> dict[str, Any]:
    return {
        "rule": found.rule.words(names),
        "kind": found.rule.kind,
        "body": [names[r] for r in found.rule.body],
        "head": names[found.rule.head],
        "support": found.support,
        "instances": found.instances,
        "drawn": found.drawn,
        "confidence": found.confidence,
        "pca_confidence": found.pca_confidence,
        "error": found.error,
    }


def _print_rules(found: Sequence[JudgedRule], names: Sequence[str]) -> None:
    from golde.analysis.rules import LEAST_CONFIDENCE, MOST_ERROR

    if not found:
        say("No rule holds.")
    else:
        say_table(
            ["rule", "confidence", "PCA", "of", "error"],
            (
                [
                    one.rule.words(names),
                    f"{one.confidence:.3f}",
                    f"{one.pca_confidence:.3f}",
                    _instances(one.instances, one.drawn),
                    _error(one.error),
                ]
                for one in found[:RULES_SHOWN]
            ),
            "<>>>>",
        )
    if len(found) > RULES_SHOWN:
        say(f"… and {len(found) - RULES_SHOWN} more; --json has them all.")
    for line in RULES_KEY if found else ():
        say(line, style="dim")
    say(
        f"Left out: confidence below {LEAST_CONFIDENCE:g}, or error above {MOST_ERROR:g}.",
        style="dim",
    )


def _print(found: Explanation, top: int) -> None:
    say(_sentence(found.fact), style="bold")
    chance = found.probability
    say_points(
        [
            ("score", f"{found.score:.3f}"),
            *([] if chance is None else [("probability", probability(chance))]),
            ("rank", f"tail {found.tail_rank:g}, head {found.head_rank:g} of {found.entities:,}"),
            ("known from", found.known or "nowhere"),
        ]
    )
    say("\nRules that imply it", style="bold")
    _print_applied(found, top)
    say("Nearest training facts of the same relation", style="bold")
    _print_facts(found.supporting, "this relation has no other training fact")
    say(
        "Distances between entities are sums over the components, in tangent coordinates:\n"
        f"above of the heads plus of the tails, for a random fact about {found.typical_distance:.1f};\n"
        "below of a fact's other entity from the other end of the question.\n",
        style="dim",
    )
    head, _, tail = found.fact
    _print_about(head, tail, found.about_head, found.about_head_count)
    if head != tail:
        _print_about(tail, head, found.about_tail, found.about_tail_count)
    if found.geometries:
        say("Components that carried the score", style="bold")
        _print_components(found.geometries, found.components)


def _print_applied(found: Explanation, top: int) -> None:
    holding = [rule for rule in found.rules if rule.holds]
    if holding:
        say_table(
            ["rule, and facts that fulfil it", "confidence", "PCA", "of", "error"],
            (
                [
                    f"{rule.words}\n{_because(rule.because, rule.ways)}",
                    f"{rule.confidence:.3f}",
                    f"{rule.pca_confidence:.3f}",
                    _instances(rule.instances, rule.drawn),
                    _error(rule.error),
                ]
                for rule in holding[:top]
            ),
            "<>>>>",
        )
    others = len(found.rules) - min(top, len(holding))
    if not found.rules:
        say("None: no training facts join the two as the body of a rule would.", style="dim")
    elif others:
        more = "more that apply" if holding else "that apply but do not hold in general"
        say(f"{'' if holding else 'None. '}--json has {others} {more}.", style="dim")
    for line in RULES_KEY if holding else ():
        say(line, style="dim")
    say()


def _print_facts(facts: Sequence[NearFact], nothing: str) -> None:
    if facts:
        rows = ([*near.fact, f"{near.distance:.2f}"] for near in facts)
        say_table(["head", "relation", "tail", "distance"], rows, "<<<>")
    else:
        say(nothing + "\n", style="dim")


def _print_about(name: str, other: str, facts: Sequence[NearFact], count: int) -> None:
    say(
        f"Other training facts about {name} (it has {count:,}), by nearness to {other}",
        style="bold",
    )
    _print_facts(facts, "none but what is listed above" if count else "none")


def _print_components(
    geometries: Sequence[Contribution], components: Sequence[Contribution]
) -> None:
    shown = [*geometries]
    if len(components) > 2 * COMPONENTS_SHOWN:
        shown += [*components[:COMPONENTS_SHOWN], *components[-COMPONENTS_SHOWN:]]
    else:
        shown += components
    say_table(
        ["space", "this fact", "other tails", "nearer by"],
        (
            [one.space, f"{one.distance:.3f}", f"{one.typical:.3f}", f"{one.favour:+.3f}"]
            for one in shown
        ),
        "<>>>",
    )


def _because(facts: Sequence[Fact], ways: int) -> str:
    text = "\n".join(f"    {_sentence(fact)}" for fact in facts)
    return text if ways == 1 else f"{text} ({ways - 1} more)"


def _sentence(fact: Fact) -> str:
    return " — ".join(fact)


def _instances(count: int, drawn: bool) -> str:
    return f"{count:,} drawn" if drawn else f"{count:,}"


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
