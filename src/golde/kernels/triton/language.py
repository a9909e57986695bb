"""Triton's names, or stand-ins that let the kernels' modules import where it is not installed.

``exp2``, ``log2`` and ``rsqrt`` are single instructions of the hardware, without the extra ones that
Triton adds for denormal numbers, which do not occur where they are used.
"""

from __future__ import annotations

import os
from typing import Any

from golde.kernels.triton.rehearsal import Kernel

try:
    import triton.language as tl
    from triton import jit
except ImportError:  # ``supports`` says no, and nothing below is called
    tl = None

    def jit(function: Any = None, **_: Any) -> Any:
        return jit if function is None else function


def kernel(function: Any = None, **options: Any) -> Any:
    """``jit`` for what is launched on a grid, and not only called by other kernels."""
    if function is None:
        return lambda given: kernel(given, **options)
    return Kernel(jit(function, **options))


if tl is not None and os.environ.get("TRITON_INTERPRET") == "1":  # it knows no machine code

    @jit
    def exp2(x):
        return tl.exp2(x)

    @jit
    def log2(x):
        return tl.log2(x)

    @jit
    def rsqrt(x):
        return tl.rsqrt(x)

else:

    @jit
    def exp2(x):
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @jit
    def log2(x):
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @jit
    def rsqrt(x):
        return tl.inline_asm_elementwise(
            "rsqrt.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


__all__ = ["exp2", "jit", "kernel", "log2", "rsqrt", "tl"]
