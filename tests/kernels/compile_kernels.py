"""Compile every kernel for a Hopper GPU, as ``test_triton`` runs it in a process without the interpreter."""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from golde.kernels.triton import configuration
from golde.kernels.triton.kernels import forward_kernel, gradients_kernel, slopes_kernel

HOPPER = GPUTarget("cuda", 90, 32)
POINTERS = {
    *("q", "c", "root", "a", "n", "out", "own", "other", "grad", "grad_own", "grad_first"),
    *("grad_second", "slopes", "sums_root", "sums_a", "sums_n"),
}


def compiled(kernel: Any, precision: str, **constants: Any) -> Any:
    """The kernel for these constants, its other arguments being of the usual types."""
    blocks = configuration(13, 36).forward
    constants |= {"NORM": 2, "PRECISION": precision, "PIECES": 3, "ACCUMULATE": True, "WIDE": False}
    constants |= dict.fromkeys(("BLOCK_B", "BLOCK_OWN"), blocks.rows)
    constants |= dict.fromkeys(("BLOCK_N", "BLOCK_OTHER"), blocks.columns) | {"BLOCK_C": 32}
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


def main() -> None:
    kernels: list[tuple[Any, dict[str, Any]]] = [
        (forward_kernel, {}),
        (gradients_kernel, {"OF_QUERIES": True}),
        (gradients_kernel, {"OF_QUERIES": False}),
        (slopes_kernel, {}),
    ]
    done = [
        compiled(kernel, precision, GEODESIC=precision == "tf32x3", **constants)
        for kernel, constants in kernels
        for precision in ("ieee", "tf32x3")
    ]
    assert all(binary.asm["cubin"] for binary in done)
    print(f"{len(done)} kernels")


if __name__ == "__main__":
    main()
