"""One process that meets its own kind by NCCL on a GPU, and by Gloo on a CPU: the same steps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from processes import environment

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="NCCL wants a GPU")

MEETING = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]


@pytest.mark.parametrize("bias", ["true", "false"])
def test_nccl_and_gloo_take_the_same_steps(tmp_path: Path, bias: str) -> None:
    command = ["-m", "golde", "train", "world", "--set", "training.steps=30"]
    command += ["--set", f"model.bias={bias}"]
    losses = []
    for device in ("cuda", "cpu"):
        done = subprocess.run(
            [*MEETING, *command, "--device", device, "--out", device],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / device / "log.jsonl").read_text().splitlines()
        losses.append([json.loads(line)["loss"] for line in lines])
    assert len(losses[0]) > 1
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
