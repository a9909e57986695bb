"""How long do a million facts over 200,000 entities take to be ready, and in how much memory?

Ready means read, numbered, repeated rows dropped, splits made and all known facts indexed. Every
format is loaded in a process of its own, on two threads; memory is the growth of its peak over
what it held with the libraries imported.

    python benchmarks/load_million.py --out load_million.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

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


def measure(path: str) -> dict[str, float]:
    """Load one file in this process."""
    import resource

    from golde.data.loading import load_graph

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB on Linux

    before, start, cpu = peak(), time.perf_counter(), time.process_time()
    graph = load_graph(Path(path))
    read = time.perf_counter() - start
    graph.known()
    ready = time.perf_counter() - start
    return {
        "read_s": round(read, 2),
        "ready_s": round(ready, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "peak_growth_mb": round(peak() - before, 1),
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
        env={**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        in_child("write_files", folder)
        results = {
            name: in_child("measure", Path(folder, file), "no extra" in name)
            for name, file in FORMATS.items()
        }
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    record = {
        "question": __doc__.splitlines()[0],
        "results": results,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("golde", "numpy", "torch", "pyarrow")},
        "commit": commit.stdout.strip(),
    }
    out.write_text(json.dumps(record, indent=2) + "\n")
    for name, result in results.items():
        print(f"{name:>24}  {result}")


if __name__ == "__main__":
    main()
