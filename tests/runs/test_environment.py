"""What is noted down of the machine."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from golde.runs.environment import environment


@pytest.mark.parametrize(("there", "expected"), [(True, "triton 9.8"), (False, "plain")])
def test_figures_of_a_gpu_say_which_kernels_made_them(
    there: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    monkeypatch.setattr("golde.runs.environment.has_triton", lambda: there)
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="9.8"))
    found = environment("cuda")
    assert (found["gpu"], found["kernels"]) == ("a GPU", expected)


def test_a_cpu_has_no_kernels() -> None:
    assert {"gpu", "kernels"}.isdisjoint(environment("cpu"))
