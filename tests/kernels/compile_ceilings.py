"""Compile the kernels of benchmarks/ceilings.py for a Hopper GPU; what each is there for must be in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import ceilings

HOPPER = GPUTarget("cuda", 90, 32)


def compiled(kernel: Any, types: dict[str, str], warps: int, stages: int, **constants: Any) -> str:
    """The PTX of a kernel; its other arguments are integers, all multiples of 16."""
    signature, values, attributes = {}, {}, {}
    for place, parameter in enumerate(kernel.params):
        if parameter.is_constexpr:
            signature[parameter.name], values[(place,)] = "constexpr", constants[parameter.name]
        else:
            signature[parameter.name] = types.get(parameter.name, "i32")
            attributes[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature=signature, constexprs=values, attrs=attributes)
    binary = triton.compile(
        source, target=HOPPER, options={"num_warps": warps, "num_stages": stages}
    )
    assert binary.asm["cubin"]
    return str(binary.asm["ptx"])


def main() -> None:
    compiled(ceilings.copy_kernel, {"source": "*fp32", "target": "*fp32"}, 4, 3, BLOCK=1024)
    chain = {"BLOCK": 1024, "UNROLLED": 32}
    numbers = {"out": "*fp32", "a": "fp32", "b": "fp32"}
    each = 1024 // 128 * 32  # numbers a thread, times the steps unrolled
    fma = compiled(ceilings.multiply_add_kernel, numbers, 4, 3, **chain)
    assert fma.count("fma.rn.f32") == each
    print("FFMA")
    special = compiled(ceilings.special_kernel, {"out": "*fp32"}, 4, 3, **chain)
    assert special.count("ex2.approx.ftz") == special.count("rsqrt.approx.ftz") == each
    print("MUFU")
    matrices = dict.fromkeys(("a", "b", "out"), "*fp32")
    for tile in ceilings.TILES:
        sides = {"ROWS": tile.rows, "COLUMNS": tile.columns, "DEPTH": tile.depth}
        product = compiled(ceilings.product_kernel, matrices, tile.warps, tile.stages, **sides)
        assert "wgmma.mma_async" in product
        assert "tf32" in product
    print("HGMMA")


if __name__ == "__main__":
    main()
