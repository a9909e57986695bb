"""How long do a million facts over 200,000 entities take to be ready, and in how much memory?

Ready means read, numbered, repeated rows dropped, splits made and all known facts indexed. Every
load has a process of its own, on two threads; memory is the growth of its peak over what it held
with golde imported. The formats take turns; figures are medians over the rounds.

    python benchmarks/load_million.py --out results/load_million.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import spread

from golde.benchmark.provenance import provenance

THREADS = 2
FACTS, ENTITIES, RELATIONS = 1_000_000, 200_000, 500
FORMATS = {
    "tsv": "train.tsv",
    "tsv, no extra installed": "train.tsv",
    "tsv.gz": "train.tsv.gz",
    "csv": "train.csv",
    "parquet": "train.parquet",
}


def write_files(folder: str) -> None:
    """The same random facts in every format, names about 12 characters long."""
    import gzip

    import numpy as np
    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    # Squaring makes some entities far more frequent than others, as in real graphs.
    ends = (rng.random((FACTS, 2)) ** 2 * ENTITIES).astype(int)
    relations = rng.integers(RELATIONS, size=FACTS)
    rows = [
        (f"entity_{head:06d}", f"relation_{relation:03d}", f"entity_{tail:06d}")
        for (head, tail), relation in zip(ends, relations, strict=True)
    ]
    text = "".join(f"{head}\t{relation}\t{tail}\n" for head, relation, tail in rows)
    Path(folder, "train.tsv").write_text(text)
    Path(folder, "train.csv").write_text(text.replace("\t", ","))
    Path(folder, "train.tsv.gz").write_bytes(gzip.compress(text.encode(), 6))
    columns = dict(zip(("head", "relation", "tail"), zip(*rows, strict=True), strict=True))
    parquet.write_table(pyarrow.table(columns), Path(folder, "train.parquet"))


def measure(path: str) -> dict[str, Any]:
    """Load one file in this process."""
    import resource

    from golde.data.loading import load_graph

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MiB on Linux

    before, start, cpu = peak(), time.perf_counter(), time.process_time()
    graph = load_graph(Path(path))
    read = time.perf_counter() - start
    graph.known()
    ready = time.perf_counter() - start
    return {
        "figures": {
            "read_s": read,
            "ready_s": ready,
            "cpu_s": time.process_time() - cpu,
            "peak_growth_mb": peak() - before,
        },
        "entities": len(graph.entities),
        "facts": len(graph.train) + len(graph.valid) + len(graph.test),
    }


def in_child(function: str, path: Path | str, without_extras: bool = False) -> Any:
    """Call one of the functions above in a new process.

    The writer too runs in one: the peak of a process starts from the peak of the one it came from.
    """
    hidden = "sys.modules.update(pyarrow=None, zstandard=None, pyoxigraph=None)\n"
    code = f"print(json.dumps(load_million.{function}(sys.argv[1])))"
    code = "import json, sys\n" + hidden * without_extras + "import load_million\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=Path(__file__).parent,  # where -c finds this module
        env={**os.environ, "OMP_NUM_THREADS": str(THREADS)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """What was loaded, the same in every round, and the spread of each figure."""
    loaded = {key: rounds[0][key] for key in ("entities", "facts")}
    return loaded | {
        key: spread(one["figures"][key] for one in rounds) for key in rounds[0]["figures"]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in FORMATS}
    with tempfile.TemporaryDirectory() as folder:
        in_child("write_files", folder)
        for _ in range(options.repeats):
            for name, file in FORMATS.items():
                one = in_child("measure", Path(folder, file), "no extra" in name)
                print(f"{name:>24}  {one}", flush=True)
                rounds[name].append(one)
    report = {
        **provenance(["torch", "numpy", "pyarrow"]),
        "settings": {
            "rows": FACTS,
            "entities": ENTITIES,
            "relations": RELATIONS,
            "repeats": options.repeats,
            "threads": THREADS,
        },
        "results": {name: summary(each) for name, each in rounds.items()},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
