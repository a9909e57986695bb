"""Compile distance and optimiser kernels for a Hopper GPU; ``test_triton`` runs it, not interpreted."""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from golde.kernels.triton import configuration
from golde.kernels.triton import row_adam_kernels as rows
from golde.kernels.triton.kernels import backward_kernel, forward_kernel, slopes_kernel

HOPPER = GPUTarget("cuda", 90, 32)
POINTERS = {
    *("q", "c", "of_query", "of_candidate", "out", "grad", "to_q", "to_c", "to_query"),
    *("to_candidate", "slopes", "sums_root", "sums_a", "sums_n"),
}

INTEGERS = {"ids": "*i64", "stamp": "*i64", "turn": "*i64", "last": "*i32", "taken": "*i32"}


def compiled(kernel: Any, precision: str, **constants: Any) -> Any:
    """The kernel for these constants, its other arguments being of the usual types."""
    blocks = configuration(13).backward
    constants |= {"NORM": 2, "PRECISION": precision, "ACCUMULATE": True, "WIDE": False}
    constants |= {"BLOCK_B": blocks.rows, "BLOCK_N": blocks.columns, "BLOCK_C": 32}
    signature, values = {}, {}
    for place, parameter in enumerate(kernel.params):
        name = parameter.name
        if parameter.is_constexpr:
            signature[name], values[(place,)] = "constexpr", constants[name]
        else:
            signature[name] = "*fp32" if name in POINTERS else "fp32" if name == "weight" else "i32"
    source = ASTSource(kernel, signature=signature, constexprs=values)
    options = {"num_warps": blocks.warps, "num_stages": blocks.stages}
    return triton.compile(source, target=HOPPER, options=options)


def compiled_rows(kernel: Any, *, lazy: bool) -> Any:
    """A kernel of the optimiser by rows, for rows of 792 numbers."""
    constants = {"D": 792, "BLOCK": 1024, "CORRECTED": 20_000, "LAZY": lazy}
    signature, values = {}, {}
    for place, parameter in enumerate(kernel.params):
        name = parameter.name
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            values[(place,)] = constants.get(name, parameter.default)
        else:
            signature[name] = INTEGERS.get(name, "*fp32")
    source = ASTSource(kernel, signature=signature, constexprs=values)
    options = {"num_warps": 4, "enable_fp_fusion": False}
    return triton.compile(source, target=HOPPER, options=options)


def main() -> None:
    kernels = [(forward_kernel, 64), (backward_kernel, 32), (slopes_kernel, 128)]
    done = [
        compiled(kernel, precision, GEODESIC=precision == "tf32x3", WIDTH=width)
        for kernel, width in kernels
        for precision in ("ieee", "tf32x3")
    ]
    either = [rows.gather_kernel, rows.update_kernel]
    once = [rows.fold_kernel, rows.square_kernel, rows.settle_kernel]
    done += [compiled_rows(kernel, lazy=lazy) for kernel in either for lazy in (False, True)]
    done += [compiled_rows(kernel, lazy=False) for kernel in once]
    assert all(binary.asm["cubin"] for binary in done)
    print(f"{len(done)} kernels")


if __name__ == "__main__":
    main()
