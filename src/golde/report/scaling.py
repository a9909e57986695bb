"""What ``benchmarks/scaling.py`` found: steps of one and two processes, exchanges, and what GPUs might do."""

from __future__ import annotations

from typing import Any

from golde.benchmark.communication import Exchange, Link
from golde.report.tables import markdown as table

KINDS = {"strong": "the same work in all", "weak": "the same work each"}
WAYS = {"add_up": "sums", "collect": "all told to all"}


def scaling(found: dict[str, Any]) -> str:
    """The section of the page."""
    machine, versions, settings = found["machine"], found["versions"], found["settings"]
    return (
        f"{_steps(found)}\n\n"
        f"A step of `{found['strong'][0]['size']['signature']}` with {found['strong'][0]['size']['batch']} "
        "queries; in brackets the times that repeats took. Each process has one thread; processor is the "
        "time that it computed, and efficiency is by that, since other work on the machine makes steps "
        "longer. Exchanges are the time spent in them, waiting for the other included; the model has no "
        "waiting in it.\n\n"
        "![Exchanges between two processes, and steps of many GPUs](assets/scaling.png)\n\n"
        f"{_links(found)}\n\n"
        f"{_prediction(found['prediction'])}\n\n"
        f"Medians of {settings['repeats']} repeats of {settings['steps']} steps, by Gloo on loopback; the "
        f"load of the machine was {settings['load_before']:.1f} before{_busy(found)}. {machine['cpu']}, "
        f"{machine['cores']} cores; Python {versions['python']}, torch {versions['torch']}; commit "
        f"`{found['commit'][:10]}`; written by "
        "`benchmarks/scaling.py`."
    )


def _busy(found: dict[str, Any]) -> str:
    """A warning if others used the machine."""
    several = found["settings"]["load_before"] > found["machine"]["cores"] / 2
    return ": others used it, so that times of the clock say little" if several else ""


def exchange_model_ms(found: dict[str, Any], one: dict[str, Any]) -> float:
    """What latency and bandwidth say of the exchanges of a step."""
    links = {kind: Link(**link) for kind, link in found["links"].items()}
    exchanges = [Exchange(**exchange) for exchange in one["exchanges"]]
    return 1e3 * sum(links[e.kind].seconds(e, one["processes"]) for e in exchanges)


def _steps(found: dict[str, Any]) -> str:
    rows = []
    for kind, words in KINDS.items():
        alone: dict[int, float] = {}
        for one in found[kind]:
            size, several = one["size"], one["processes"] > 1
            work = size["negatives"] if kind == "strong" else size["negatives"] // one["processes"]
            alone.setdefault(work, one["processor_ms"])
            grown = one["processes"] if kind == "strong" else 1
            ratio = alone[work] / one["processor_ms"] / grown
            low, high = one["range_ms"]
            rows.append(
                [
                    words,
                    f"{one['processes']}",
                    f"{size['entities']:,}",
                    f"{size['negatives']:,}",
                    f"**{one['ms']:.0f} ms** ({low:.0f}–{high:.0f})",
                    f"{one['processor_ms']:.0f} ms",
                    f"{ratio:.0%}" if several else "",
                    f"{one['exchange_ms']:.1f} ms" if several else "",
                    f"{exchange_model_ms(found, one):.1f} ms" if several else "",
                    f"{len(one['exchanges'])}, {_bytes(one['exchanges']) / 1e6:.2f} MB",
                ]
            )
    head = ["scaling", "processes", "entities", "negatives", "a step", "processor", "efficiency"]
    return table([*head, "exchanges", "by the model", "number and size"], rows)


def _links(found: dict[str, Any]) -> str:
    told = [
        f"{WAYS[kind]} {1e6 * link['latency']:.0f} µs and {link['bandwidth'] / 1e9:.2f} GB/s"
        for kind, link in found["links"].items()
    ]
    return f"Latency and bandwidth between two processes, fitted to what was measured: {', '.join(told)}."


def _prediction(found: dict[str, Any]) -> str:
    rows = [
        [
            words,
            f"{one['gpus']}",
            f"{one['negatives']:,.0f}",
            f"{one['ms']:.2f} ms",
            f"{one['exchange_ms']:.2f} ms",
            f"{one['pairs_per_second'] / 1e9:.1f} G",
            f"{one['efficiency']:.0%}",
        ]
        for kind, words in KINDS.items()
        for one in found[kind]
    ]
    head = ["predicted", "GPUs", "negatives", "a step", "exchanges", "pairs a second", "efficiency"]
    step, near, far = found["step_ms"], found["links"]["within"], found["links"]["between"]
    return (
        f"{table(head, rows)}\n\n**A prediction, not a measurement.** A step of one "
        f"{found['measured_on']['gpu']} was measured ([how a step grows](#how-a-step-on-a-gpu-grows)): "
        f"{step['fixed']:.2f} ms, and {step['each_1000_negatives']:.2f} ms for every 1,000 negatives. Of "
        "many, each has its part of the negatives, and all make the "
        f"{len(found['exchanges'])} exchanges of a step of that size, "
        f"{_bytes(found['exchanges']) / 1e6:.1f} MB, one after the other and not while computing. Assumed, "
        f"with {found['gpus_a_machine']} GPUs a machine: {1e6 * near['latency']:.0f} µs and "
        f"{near['bandwidth'] / 1e9:.0f} GB/s within a machine, {1e6 * far['latency']:.0f} µs and "
        f"{far['bandwidth'] / 1e9:.0f} GB/s between machines; sums by rings, ⌈log₂ P⌉ latencies each; and "
        "that a step of several processes computes as fast as the fused, captured step of one, which it "
        "does not yet."
    )


def _bytes(exchanges: list[dict[str, Any]]) -> int:
    return sum(int(exchange["bytes"]) for exchange in exchanges)
