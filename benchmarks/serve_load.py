"""How many requests a second does ``golde serve`` answer, how long do they take, and does memory grow?

Two models that are not trained, since time does not depend on what was learned: with 2,000 entities, about
those of ``world``, and with 100,000, 128 numbers each. A service of both runs in processes of its own;
clients are connections of this process that ask again as soon as they are answered, on the same machine. Each
kind of request is asked by 1, 16 and 64 clients at a time. Then a mixture of all kinds is asked of the small
model for ``--soak`` seconds by 16 clients, while the memory of the service is read once a second.

    python benchmarks/serve_load.py --out results/serve_load.json
    python benchmarks/serve_load.py --soak 600 --seconds 10 --out results/serve_load.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import torch

from golde.benchmark.provenance import provenance
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.models import build
from golde.runs import RunFolder
from golde.runs.atomic import write_json
from golde.runs.environment import environment

SIGNATURE, CLIENTS = "P8x8 Q9x8", (1, 16, 64)
SIZES = {"small": (2_000, 20, 8_000), "large": (100_000, 100, 500_000)}
"""Entities, relations and facts."""
SYLLABLES = ("ka", "ro", "mi", "te", "lan", "ber", "gu", "sto", "vi", "na", "den", "ur", "el", "ha")
SOAK_CLIENTS = 16

Request = bytes
Ask = Callable[[random.Random], Request]


def names_of(count: int, rng: random.Random) -> list[str]:
    """Distinct names of two words that share many of their letters, as those of places do."""
    found: dict[str, None] = {}
    while len(found) < count:
        words = ("".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))) for _ in range(2))
        found[" ".join(words).title()] = None
    return list(found)


def write_run(folder: Path, entities: int, relations: int, facts: int) -> KnowledgeGraph:
    """A finished run that was never trained."""
    rng = np.random.default_rng(0)
    heads = (rng.random(facts) ** 2 * entities).astype(np.int64)  # some have many facts
    rows = np.stack(
        [heads, rng.integers(relations, size=facts), rng.integers(entities, size=facts)], 1
    )
    triples = torch.from_numpy(np.unique(rows, axis=0))
    graph = KnowledgeGraph(
        Vocabulary(names_of(entities, random.Random(0)), "entity"),
        Vocabulary((f"relation {i}" for i in range(relations)), "relation"),
        triples,
        triples[:0],
        triples[:0],
        name=folder.name,
    )
    config = Config().with_values(model={"signature": SIGNATURE})
    model = build(config.model, entities, relations)
    folder.mkdir()
    about = {
        "environment": environment(torch.device("cpu")),
        "finished": True,
        **{"steps": 0, "chosen_step": 0, "seconds": 0.0, "validation": []},
    }
    RunFolder(folder).create(config, graph, about, model)
    return graph


def post(path: str, body: Any) -> Request:
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(text)}\r\n\r\n".encode() + text


def get(path: str, **query: Any) -> Request:
    address = f"{path}?{urlencode(query)}" if query else path
    return f"GET {address} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def questions(graph: KnowledgeGraph) -> dict[str, Ask]:
    """What is asked, by kind."""
    base, entities, relations = f"/api/v1/runs/{quote(graph.name)}", graph.entities, graph.relations

    def one(names: Vocabulary, rng: random.Random) -> str:
        return rng.choice(names.names)

    def typed(rng: random.Random) -> str:
        """A name as somebody types it, every third time with two letters swapped."""
        name = one(entities, rng)[: rng.randint(3, 9)]
        at = rng.randint(0, len(name) - 2)
        return (
            name if rng.random() < 2 / 3 else name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        )

    return {
        "predict": lambda rng: post(
            f"{base}/predict", {"head": one(entities, rng), "relation": one(relations, rng)}
        ),
        "score": lambda rng: post(
            f"{base}/score",
            {
                "facts": [
                    {
                        "head": one(entities, rng),
                        "relation": one(relations, rng),
                        "tail": one(entities, rng),
                    }
                    for _ in range(10)
                ]
            },
        ),
        "search": lambda rng: get(f"{base}/entities", q=typed(rng)),
        "facts": lambda rng: get(f"{base}/facts", entity=one(entities, rng)),
        "neighbours": lambda rng: get(f"{base}/neighbours", entity=one(entities, rng)),
        "explain": lambda rng: post(
            f"{base}/explain",
            {
                "head": one(entities, rng),
                "relation": one(relations, rng),
                "tail": one(entities, rng),
            },
        ),
        "points": lambda rng: get(
            f"{base}/points", component=rng.randint(1, 16), format="binary", limit=100_000
        ),
    }


class Client:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, request: Request) -> tuple[int, bytes]:
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return int(head[9:12]), await self.reader.readexactly(length)


async def own_figure(port: int, name: str) -> float:
    """What the service says of itself."""
    async with Client(port) as client:
        _, text = await client.ask(get("/metrics"))
    return float(text.partition(f"\n{name} ".encode())[2].split(b"\n")[0])


async def load(port: int, ask: Ask, clients: int, seconds: float) -> dict[str, Any]:
    """Requests a second and how long they took, of so many clients that never rest."""
    times: list[float] = []
    statuses: Counter[int] = Counter()
    begun = 0.0

    async def one(number: int) -> None:
        rng = random.Random(number)
        async with Client(port) as client:
            while time.perf_counter() - begun < seconds:
                request = ask(rng)
                start = time.perf_counter()
                status, _ = await client.ask(request)
                times.append(time.perf_counter() - start)
                statuses[status] += 1

    before = await own_figure(port, "process_cpu_seconds_total")
    begun = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(clients)))
    took = time.perf_counter() - begun
    cpu = await own_figure(port, "process_cpu_seconds_total") - before
    p50, p99 = np.quantile(times, (0.5, 0.99))
    return {
        "requests": len(times),
        "per_second": round(len(times) / took, 1),
        "p50_ms": round(1e3 * float(p50), 2),
        "p99_ms": round(1e3 * float(p99), 2),
        "processor_ms": round(1e3 * cpu / len(times), 2),
        "busy": statuses[503],
        "errors": sum(count for status, count in statuses.items() if status not in (200, 503)),
    }


async def soak(port: int, asks: dict[str, Ask], seconds: float) -> dict[str, Any]:
    """Everything at once, and the memory of the service meanwhile."""
    kinds = ["predict"] * 6 + ["search"] * 6 + ["score", "facts", "neighbours", "explain", "points"]

    def mixed(rng: random.Random) -> Request:
        return asks[rng.choice(kinds)](rng)

    memory: list[float] = []

    async def watch() -> None:
        while True:
            memory.append(await own_figure(port, "process_resident_memory_bytes") / 1e6)
            await asyncio.sleep(1)

    # Memory grows until everything was asked for once.
    await load(port, mixed, SOAK_CLIENTS, min(10.0, seconds))
    watching = asyncio.create_task(watch())
    found = await load(port, mixed, SOAK_CLIENTS, seconds)
    watching.cancel()
    fifth = max(1, len(memory) // 5)
    return {
        "clients": SOAK_CLIENTS,
        "seconds": seconds,
        **found,
        "memory_mb": {
            "first_fifth": round(float(np.mean(memory[:fifth])), 1),
            "last_fifth": round(float(np.mean(memory[-fifth:])), 1),
            "highest": round(max(memory), 1),
        },
    }


@contextmanager
def serving(folders: list[Path], log: Path) -> Iterator[int]:
    """The port of a service of runs."""
    command = [sys.executable, "-m", "golde", "serve", *map(str, folders), "--port", "0", "--json"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            text = ""
            while not text.endswith("}\n"):
                line = process.stdout.readline() if process.stdout else ""
                if not line:
                    raise RuntimeError(log.read_text())
                text += line
            yield int(json.loads(text)["url"].rpartition(":")[2])
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="for each kind and load")
    parser.add_argument("--soak", type=float, default=30.0, help="seconds of the mixture")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / name for name in SIZES}
        graphs = {name: write_run(folders[name], *size) for name, size in SIZES.items()}
        began = time.perf_counter()
        with serving(list(folders.values()), Path(place) / "log") as port:
            started = time.perf_counter() - began
            for name, graph in graphs.items():
                results[name] = {}
                for kind, ask in questions(graph).items():
                    results[name][kind] = {}
                    for clients in CLIENTS:
                        found = asyncio.run(load(port, ask, clients, options.seconds))
                        results[name][kind][str(clients)] = found
                        print(name, kind, clients, found, flush=True)
            results["soak"] = asyncio.run(soak(port, questions(graphs["small"]), options.soak))
            print(results["soak"], flush=True)
    report = {
        **provenance(["torch", "numpy", "fastapi", "starlette", "uvicorn"]),
        "load_before": round(load_before, 2),
        "settings": {
            "signature": SIGNATURE,
            "sizes": {
                name: dict(zip(("entities", "relations", "facts"), size, strict=True))
                for name, size in SIZES.items()
            },
            "seconds": options.seconds,
        },
        "results": {"start_s": round(started, 1), **results},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, report)


if __name__ == "__main__":
    main()
