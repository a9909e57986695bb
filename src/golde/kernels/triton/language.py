"""Triton's names, or stand-ins that let the kernels' modules import where it is not installed."""

from __future__ import annotations

from typing import Any

try:
    import triton.language as tl
    from triton import jit
except ImportError:  # ``supports`` says no, and nothing below is called
    tl = None

    def jit(function: Any) -> Any:
        return function


__all__ = ["jit", "tl"]
