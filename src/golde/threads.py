"""How several processes of one command get along on the cores of a machine."""

from __future__ import annotations

import os

import torch


def sharing_threads(processes: int) -> dict[str, str]:
    """The environment of each of so many processes, which has its part of the threads that this one has.

    With a thread a core each they would wait for each other (seen: six times slower). Where both
    variables are set, torch asks the second.
    """
    share = str(max(1, torch.get_num_threads() // processes))
    return os.environ | {"OMP_NUM_THREADS": share, "MKL_NUM_THREADS": share}
