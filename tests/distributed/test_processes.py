"""Real processes, on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import golde

SCRIPT = """
import torch, torch.distributed as dist
from golde.distributed.world import Processes
dist.init_process_group("gloo", init_method="file://{store}", rank={rank}, world_size=2)
world = Processes()
rows = torch.tensor([[1.0 + world.rank, 2.0]])
print(world.rank, world.size, list(world.share(5)), world.add_up(rows.clone()).tolist(),
      world.collect(rows[0]).tolist(), world.sent)
dist.destroy_process_group()
"""


def test_two_processes_add_up_and_collect(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(golde.__file__).parents[1])}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT.format(store=tmp_path / "store", rank=rank)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [worker.communicate(timeout=120)[0].strip() for worker in workers]
    told = "[[3.0, 4.0]] [[1.0, 2.0], [2.0, 2.0]] 16"
    assert found == [f"0 2 [0, 1] {told}", f"1 2 [2, 3, 4] {told}"]
