"""Processes of one command share the threads of a CPU, whatever the environment had for one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from golde.distributed import launch
from golde.threads import sharing_threads
from golde.tuning import processes

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@pytest.fixture(autouse=True)
def _eight_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)


@pytest.mark.parametrize("given", [{}, {"OMP_NUM_THREADS": "2"}, {"MKL_NUM_THREADS": "2"}])
def test_a_process_has_its_part_of_the_threads(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    asked = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    env = sharing_threads(8)
    assert subprocess.run(asked, env=env, capture_output=True, text=True).stdout == "1\n"


def test_there_is_a_thread_for_each() -> None:
    assert {sharing_threads(9)[variable] for variable in VARIABLES} == {"1"}


class Begun(Exception):
    """In place of a process: the threads that it would have."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__(*(environment[variable] for variable in VARIABLES))


def test_train_on_several_devices_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(command: Any, *, env: dict[str, str], **options: Any) -> None:
        raise Begun(env)

    monkeypatch.setattr(subprocess, "Popen", begin)
    with pytest.raises(Begun) as begun:
        launch.run_on(4, ["train"])
    assert begun.value.args == ("2", "2")


def test_tune_by_several_workers_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(command: Any, environment: Mapping[str, str]) -> None:
        raise Begun(environment)

    monkeypatch.setattr(processes, "_start", begin)
    with pytest.raises(Begun) as begun:
        processes.search_side_by_side(SimpleNamespace(place="study.db"), ["golde"], 4)
    assert begun.value.args == ("2", "2")
