"""A section on the probabilities of answers that are shown, of single claims, and of missing facts."""

from __future__ import annotations

from typing import Any

from golde.report.tables import markdown as table
from golde.report.tables import provenance

WORDS = {
    "claims": "single claims, even chances",
    "answers": "**shown answers**",
    "answers, test facts wrong": "the same, test facts wrong",
}


def shown_answers(found: dict[str, Any]) -> str:
    """What was said of answers, claims and missing facts beside what was true, by what was fitted."""
    sets, shown = found["results"], found["shown"]
    rows = []
    for name, one in sets.items():
        rows.append(
            [name, "nothing: σ(score + margin)"]
            + [f"{one['unfitted'][what]['ece']:.3f}" for what in ("answers", "claims")]
            + ["", "", ""]
        )
        by_method: dict[str, list[dict[str, Any]]] = {}
        for fitted in one["calibrations"]:
            by_method.setdefault(fitted["fitted_to"], []).append(fitted)
        for kind, both in by_method.items():
            first = both[0]
            answers, missing = first["answers"], first["missing"]
            rows.append(
                [name, WORDS[kind]]
                + [
                    ", ".join(f"{by[what]['ece']:.3f}" for by in both)
                    for what in ("answers", "claims")
                ]
                + [
                    f"{answers['brier']:.3f}",
                    f"{answers['likely_true']:,} of {answers['likely']:,}",
                    f"{missing['found']['1000']:,} ({missing['said']['1000']:,.0f})",
                ]
            )
    head = ["set", "fitted to", "ECE, answers", "ECE, claims", "Brier, answers"]
    head += [f"said ≥ {found['likely']:g}", "missing of 1,000 (said)"]
    (steps,) = {one["settings"]["training"]["steps"] for one in sets.values()}
    (space,) = {one["settings"]["model"]["signature"] for one in sets.values()}
    shares = ", ".join(
        f"{one['answers']['right'] / one['answers']['count']:.1%} on {name}"
        for name, one in sets.items()
    )
    by_score = ", ".join(
        f"{one['missing_by_score']['found']['1000']:,} on {name}" for name, one in sets.items()
    )
    hard = "".join(_hard(name, one["calibrations"]) for name, one in sets.items())
    return (
        f"{table(head, rows)}\n\nAnswers are the best {shown} to the questions of test facts that training "
        f"and validation do not hold, right if they are test facts ({shares}); claims are test facts and "
        "typed negatives with even chances; the last column has the test facts among the 1,000 best of "
        f"`golde complete` by probability (by score {by_score}), and how many of them the probabilities "
        "promise. `golde complete` also asks questions that lack nothing, so that it finds fewer. ECE of "
        "Platt and isotonic fits, the other columns of Platt fits. All are fitted on validation "
        "facts; test facts are neither right nor wrong there, but in the last row of each set, where they "
        "count as wrong: so far off is a graph that lacks as much as validation has. "
        f"{hard}"
        f"`{space}`, {steps:,} steps, seed {found['seed']}. {provenance(found)}; written by "
        "`benchmarks/shown_answers.py`."
    )


def _hard(name: str, calibrations: list[dict[str, Any]]) -> str:
    """How well Platt fits tell test facts from hard negatives, where a set has them."""
    first = {one["fitted_to"]: one["hard"] for one in reversed(calibrations)}
    if first["claims"] is None:
        return ""
    claims, answers = (first[kind]["probability"]["accuracy"] for kind in ("claims", "answers"))
    parted = first["answers"]["threshold"]["accuracy"]
    return (
        f"Hard negatives of {name} are told from as many test facts with an accuracy of {claims:.3f} by a "
        f"probability of one half or more where fitted to claims, {answers:.3f} where fitted to answers, few "
        f"of which are facts, and {parted:.3f} by the thresholds of either. "
    )
