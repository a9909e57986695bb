"""One process and its GPU: the same training whether it meets others by NCCL or knows of none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import golde
from golde.runs import RunFolder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="NCCL wants a GPU")

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(golde.__file__).parents[1])}
ALONE = [sys.executable, "-m", "golde"]
MEETING = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]


@pytest.mark.parametrize("bias", ["true", "false"])
def test_a_process_that_meets_no_other_trains_as_one_alone(tmp_path: Path, bias: str) -> None:
    command = ["train", "world", "--device", "cuda", "--set", "training.steps=60"]
    command += ["--set", f"model.bias={bias}"]
    models = []
    for name, start in {"alone": ALONE, "meeting": [*MEETING, "-m", "golde"]}.items():
        done = subprocess.run(
            [*start, *command, "--out", name],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        models.append(RunFolder(tmp_path / name).load_model().state_dict())
    torch.testing.assert_close(*models, rtol=1e-2, atol=1e-3)
