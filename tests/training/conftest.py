"""Where there is a GPU, the tests that do not ask for it train on a CPU all the same."""

from __future__ import annotations

import pytest
import torch

from golde.training import loop


@pytest.fixture(autouse=True)
def _on_a_cpu_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    pick = loop.pick_device
    cpu = torch.device("cpu")
    monkeypatch.setattr(loop, "pick_device", lambda name: cpu if name == "auto" else pick(name))
