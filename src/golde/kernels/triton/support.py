"""Where the fused kernels can be used."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch

from golde.kernels.finish import Finish, Geodesic, Root

KNOWN = (Root, Geodesic)
"""The finishes written out in ``pointwise``; any other goes through the plain form."""


def supports(finish: Finish, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether ``fused_pairwise`` can take tensors of this kind: float32 on a GPU, a known finish.

    ``TRITON_INTERPRET=1``, set before Triton is first imported, adds the CPU: slowly, for tests.
    """
    places = ("cuda", "cpu") if os.environ.get("TRITON_INTERPRET") == "1" else ("cuda",)
    known = type(finish) in KNOWN and dtype == torch.float32
    return known and device.type in places and has_triton()


def has_triton() -> bool:
    """Whether fused kernels are wanted and can be had: Triton is there (extra: kernels).

    ``GOLDE_KERNELS=plain`` says that they are not wanted: everything then takes its plain form.
    """
    return os.environ.get("GOLDE_KERNELS") != "plain" and _installed()


@cache
def _installed() -> bool:
    return find_spec("triton") is not None
