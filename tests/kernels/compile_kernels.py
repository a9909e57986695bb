"""Compile the kernels for a Hopper GPU; ``test_triton`` runs it outside the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from golde.kernels.triton import configuration
from golde.kernels.triton.draw import COLUMNS, DRAWN
from golde.kernels.triton.draw_kernels import draw_kernel, known_kernel
from golde.kernels.triton.kernels import backward_kernel, forward_kernel, slopes_kernel
from golde.kernels.triton.loss import SCALED, WHOLE
from golde.kernels.triton.loss_kernels import adversarial_kernel, scale_kernel

HOPPER = GPUTarget("cuda", 90, 32)
POINTERS = {
    *("q", "c", "of_query", "of_candidate", "out", "grad", "to_q", "to_c", "to_query"),
    *("to_candidate", "slopes", "sums_root", "sums_a", "sums_n"),
}


DRAW = "entity direction answer *weight place !loop order step entities directions *weights places"
DRAW += " !own_masked drawn"
LOSS = "*positive *own *shared !own_masked !masked *weight *terms *to_positive *to_own *to_shared"
NARROW = {"*": "*fp32", "!": "*u8"}
"""Other pointers are to 64-bit integers."""


def compiled(kernel: Any, precision: str, **constants: Any) -> Any:
    """The kernel for these constants, its other arguments being of the usual types."""
    blocks = configuration(13).backward
    constants |= {"NORM": 2, "PRECISION": precision, "ACCUMULATE": True, "WIDE": False}
    constants |= {"BLOCK_B": blocks.rows, "BLOCK_N": blocks.columns, "BLOCK_C": 32}
    types = dict.fromkeys(POINTERS, "*fp32") | {"weight": "fp32"}
    return built(kernel, types, constants, num_warps=blocks.warps, num_stages=blocks.stages)


def built(kernel: Any, types: dict[str, str], constants: dict[str, Any], **options: int) -> Any:
    """The kernel for these types and constants; other arguments are 32-bit integers."""
    signature, values = {}, {}
    for place, parameter in enumerate(kernel.params):
        name = parameter.name
        if parameter.is_constexpr:
            signature[name], values[(place,)] = "constexpr", constants[name]
        else:
            signature[name] = types.get(name, "i32")
    source = ASTSource(kernel, signature=signature, constexprs=values)
    return triton.compile(source, target=HOPPER, options=options)


def pointers(names: str) -> dict[str, str]:
    return {name.lstrip("*!"): NARROW.get(name[0], "*i64") for name in names.split()}


def of_a_step() -> Iterator[Any]:
    """What a step draws, and its loss."""
    for takes_all in (False, True):
        types = pointers(DRAW) | {"start": "i64"}
        yield built(draw_kernel, types, {"TAKES_ALL": takes_all, "BLOCK": DRAWN}, num_warps=4)
    types = pointers("places offsets codes candidates !masked")
    yield built(known_kernel, types, {"BLOCK": COLUMNS}, num_warps=4)
    for own, block in ((False, 128), (True, WHOLE)):
        types = pointers(LOSS) | {"margin": "fp32", "temperature": "fp32"}
        constants = {"OWN": own, "BLOCK": block}
        yield built(adversarial_kernel, types, constants, num_warps=max(1, block // 512))
    yield built(scale_kernel, pointers("*values *factor"), {"BLOCK": SCALED}, num_warps=8)


def main() -> None:
    kernels = [(forward_kernel, 64), (backward_kernel, 32), (slopes_kernel, 128)]
    done = [
        compiled(kernel, precision, GEODESIC=precision == "tf32x3", WIDTH=width)
        for kernel, width in kernels
        for precision in ("ieee", "tf32x3")
    ]
    done += of_a_step()
    assert all(binary.asm["cubin"] for binary in done)
    print(f"{len(done)} kernels")


if __name__ == "__main__":
    main()
