"""Where the fused kernels can be used."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from golde.kernels.finish import Finish, Geodesic, Root

KNOWN = (Root, Geodesic)
"""The finishes written out in ``pointwise``; any other goes through the plain form."""


def supports(finish: Finish, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether ``fused_pairwise`` is the form for tensors of this kind: float32 on a GPU, a known finish."""
    known = type(finish) in KNOWN and dtype == torch.float32
    return known and device.type == "cuda" and has_triton()


def fuses(tensor: Tensor) -> bool:
    """Whether kernels are the form for work on such a tensor."""
    return tensor.is_cuda and tensor.dtype == torch.float32 and has_triton()


def has_triton() -> bool:
    """Whether fused kernels are wanted and can be had: Triton (extra: kernels) and a GPU that takes them.

    ``GOLDE_KERNELS=plain`` says that they are not wanted: everything then takes its plain form.
    """
    return os.environ.get("GOLDE_KERNELS") != "plain" and _installed()


@cache
def _installed() -> bool:
    """Triton is there and, where there is a GPU, has tried one kernel: it needs a C compiler."""
    if find_spec("triton") is None:
        return False
    if not torch.cuda.is_available():
        return True
    if torch.version.hip is not None or torch.cuda.get_device_capability() < (8, 0):
        return False
    from golde.kernels.triton.draw import known_pairs

    zeros = torch.zeros(2, dtype=torch.int64, device="cuda")
    try:
        known_pairs(zeros[:1], zeros, zeros, 1, zeros)
    except Exception as error:  # whatever is missing: the plain form works everywhere
        warnings.warn(f"fused kernels cannot be compiled here: {error}", stacklevel=2)
        return False
    return True
