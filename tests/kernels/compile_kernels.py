"""Compile the kernels for a Hopper GPU; ``test_triton`` runs it outside the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from golde.kernels.triton import configuration, ranks
from golde.kernels.triton import row_adam_kernels as rows
from golde.kernels.triton.batch import CANDIDATES, SHARES
from golde.kernels.triton.batch_kernels import (
    candidate_backward_kernel,
    candidate_kernel,
    query_backward_kernel,
    query_kernel,
    shares_kernel,
    tiles_kernel,
)
from golde.kernels.triton.dense_adam import BLOCK as MOVED
from golde.kernels.triton.dense_adam import SUMMED as SQUARES
from golde.kernels.triton.dense_adam_kernels import adam_kernel, clip_kernel, squares_kernel
from golde.kernels.triton.distance import PACK_ROWS, PAIRED_ROWS, SUMMED
from golde.kernels.triton.distance_kernels import (
    backward_kernel,
    forward_kernel,
    pack_kernel,
    paired_kernel,
    slopes_kernel,
    sum_kernel,
)
from golde.kernels.triton.draw import COLUMNS, DRAWN
from golde.kernels.triton.draw_kernels import draw_kernel, known_kernel
from golde.kernels.triton.host_rows import move_kernel
from golde.kernels.triton.loss import HELD, SCALED
from golde.kernels.triton.loss_kernels import adversarial_kernel, scale_kernel
from golde.kernels.triton.orth import REGISTERS
from golde.kernels.triton.orth_kernels import orth_backward_kernel, orth_kernel
from golde.kernels.triton.positive import BLOCK, positive_kernel
from golde.kernels.triton.ranks_kernels import BEST, COUNTS, TRUTH, mark_kernel, tile_kernel
from golde.kernels.triton.sorting import COLUMNS as COMPARED
from golde.kernels.triton.sorting import ROWS, sort_kernel

HOPPER = GPUTarget("cuda", 90, 32)

NARROW = {"*": "*fp32", "!": "*u8", "?": "*i32", ".": "fp32", "~": "i64"}
"""What the first character of a name stands for; names without one point to 64-bit integers."""

DISTANCE = (
    "*q *q_low *c *c_low *of_query *of_candidate *grad *out *to_q *to_c *to_query *to_candidate"
)
DISTANCE += " *slopes *sums_root *sums_a *sums_n *parts *total .weight"
OF_A_SIDE = "*vectors *first *second *packed *halved *sides"
PAIRED = "*q *c *root *a *n *grad *out *to_q *to_c *to_root *to_a *to_n"
BATCH = (
    "*rows order ordered ?relation ?begin ?end ?first *maps *weights *beta *packed *sides *paired"
)
BATCH += " *halved *to_q *to_c *to_query *to_candidate *grad *to_rows *shares *to_maps *to_weights"
BATCH += " *to_beta .weight"
ORTH = "*U *weights *G *W *grad *to_U *to_weights *free *found .limit"
DRAW = "entity direction answer *weight place !loop order step entities directions *weights places"
DRAW += " !own_masked drawn ~start"
LOSS = "*positive *own *shared !own_masked !masked *weight *terms *to_positive *to_own *to_shared"
LOSS += " .margin .temperature"
RANKS = "*truth answers offsets ?counts excluded *scores *maxima *push !turned entity *loop *pull ?doubt"
GROUP = "*q *q_low *c *c_low *of_query *of_candidate .scale"
TABLE = "ids stamp turn ?last ?taken .pull *rows *grad *moments *squares"


def types(names: str, usual: str = "i32") -> Any:
    """The type of every argument by its name; those that are not named have the usual one."""
    named = {name.lstrip("".join(NARROW)): NARROW.get(name[0], "*i64") for name in names.split()}
    return lambda name: named.get(name, usual)


def built(kernel: Any, type_of: Any, constants: dict[str, Any], **options: Any) -> Any:
    """The kernel for these constants."""
    function = kernel.function
    signature, values = {}, {}
    for place, parameter in enumerate(function.params):
        name = parameter.name
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            values[(place,)] = constants.get(name, parameter.default)
        else:
            signature[name] = type_of(name)
    source = ASTSource(function, signature=signature, constexprs=values)
    return triton.compile(source, target=HOPPER, options=options)


def of_the_distance() -> Iterator[Any]:
    for kernel, width in ((forward_kernel, 64), (backward_kernel, 32), (slopes_kernel, 128)):
        for precision in ("ieee", "tf32x3"):
            blocks = configuration(width, geodesic=precision == "tf32x3").backward
            constants = {"GEODESIC": precision == "tf32x3", "WIDTH": width, "PRECISION": precision}
            constants |= {"NORM": 2, "ACCUMULATE": True, "KEPT": 24, "WIDE": False}
            constants |= {"BLOCK_B": blocks.rows, "BLOCK_N": blocks.columns, "BLOCK_C": 32}
            yield built(kernel, types(DISTANCE), constants, num_warps=blocks.warps)
    yield built(sum_kernel, types(DISTANCE), {"BLOCK": SUMMED, "UNROLL": 8}, num_warps=4)
    for scalars in range(3):
        constants = {"SCALARS": scalars, "PRECISION": "tf32x3", "BLOCK": PACK_ROWS, "BLOCK_C": 32}
        yield built(pack_kernel, types(OF_A_SIDE), constants, num_warps=4)
    for backward in (False, True):
        constants = {"GEODESIC": True, "NORM": 2, "BACKWARD": backward}
        constants |= {"WIDTH": 128, "BLOCK": PAIRED_ROWS, "BLOCK_C": 64}
        yield built(paired_kernel, types(PAIRED), constants, num_warps=2)


def of_a_batch() -> Iterator[Any]:
    """What leads up to the distance, for each geometry."""
    constants = {"TILE": 32, "STEPS": 10, "BLOCK": 1024, "ROWS": ROWS, "COLUMNS": COMPARED}
    yield built(tiles_kernel, types(BATCH), constants, num_warps=4)
    yield built(sort_kernel, types("values ordered order"), constants, num_warps=4)
    for kind in range(3):
        constants = {"KIND": kind, "WIDTH": 32, "KEPT": 24, "BLOCK_K": 16, "PRECISION": "tf32x3"}
        of_queries = {"OWN": True, "NORM": 1, "TILE": 32}
        for kernel in (query_kernel, query_backward_kernel):
            yield built(kernel, types(BATCH), constants | of_queries, num_warps=2)
        for kernel in (candidate_kernel, candidate_backward_kernel):
            yield built(kernel, types(BATCH), constants | {"BLOCK": CANDIDATES}, num_warps=4)
        yield built(shares_kernel, types(BATCH), {"KIND": kind, "BLOCK": SHARES}, num_warps=4)
    for block, warps in ((16, 1), (32, 1), (64, 4)):
        constants = {"ROWS": block - 1, "K": block - 1, "BLOCK": block}
        for kernel, limit in ((orth_kernel, None), (orth_backward_kernel, REGISTERS)):
            yield built(kernel, types(ORTH), constants, num_warps=warps, maxnreg=limit)
    for backward in (False, True):
        constants = {"BACKWARD": backward, "BLOCK": BLOCK}
        yield built(positive_kernel, types(ORTH), constants, num_warps=4)


def of_a_step() -> Iterator[Any]:
    """What a step draws, and its loss."""
    for takes_all in (False, True):
        constants = {"TAKES_ALL": takes_all, "ANSWERS": not takes_all, "BLOCK": DRAWN}
        yield built(draw_kernel, types(DRAW), constants, num_warps=4)
    named = types("places offsets codes candidates !masked")
    yield built(known_kernel, named, {"BLOCK": COLUMNS}, num_warps=4)
    for own, block in ((False, 128), (True, HELD)):
        constants = {"OWN": own, "BLOCK": block}
        yield built(adversarial_kernel, types(LOSS), constants, num_warps=max(1, block // 512))
    yield built(scale_kernel, types("*values *factor"), {"BLOCK": SCALED}, num_warps=8)


def of_the_table() -> Iterator[Any]:
    """The optimiser by rows, for rows of 792 numbers."""
    deferred, lazy, pulled = ({"LAZY": i == 1, "PULLED": i == 2} for i in range(3))
    kinds = {
        rows.gather_kernel: [deferred, lazy, pulled],
        rows.update_kernel: [deferred, lazy, pulled],
        rows.settle_kernel: [deferred, pulled],
        rows.fold_kernel: [deferred],
        rows.square_kernel: [deferred],
    }
    for kernel, kind in ((kernel, kind) for kernel, several in kinds.items() for kind in several):
        constants = {"D": 792, "BLOCK": 1024, "CORRECTED": 20_000, **kind}
        named = types(TABLE, usual="*fp32")
        yield built(kernel, named, constants, num_warps=4, enable_fp_fusion=False)
    for to_table in (False, True):
        constants = {"D": 792, "BLOCK": 1024, "TO_TABLE": to_table}
        yield built(move_kernel, types("ids *rows *table"), constants, num_warps=4)


def of_the_other_parameters() -> Iterator[Any]:
    """The optimiser of three tensors, of which one has no gradient."""
    lists = dict.fromkeys(("parameters", "gradients"), ("*fp32",) * 3) | {"sizes": ("i32",) * 3}
    constants = {"GIVEN": 0b101, "BLOCK": MOVED}
    for kernel in (squares_kernel, adam_kernel):
        yield built(kernel, lambda name: lists.get(name, "*fp32"), constants, num_warps=4)
    constants |= {"TENSORS": 3, "CORRECTED": 20_000, "WIDTH": 4, "BLOCK": SQUARES}
    named = types("~blocks ~rows .limit", usual="*fp32")
    yield built(clip_kernel, named, constants, num_warps=16)


def of_ranks() -> Iterator[Any]:
    """Tiles of a model with two groups, and the mask of known facts."""
    numbers = range(ranks.MOST_GROUPS)
    named = types(" ".join([RANKS, *(f"{name}_{i}" for name in GROUP.split() for i in numbers)]))
    constants = {f"GEODESIC_{i}": i == 1 for i in numbers} | {"NORM": 1, "PRECISION": "tf32x3"}
    constants |= {"WIDTH_0": 32, "WIDTH_1": 16, "WIDTH_2": 0, "BAND": ranks.BAND}
    constants |= {"BLOCK_B": ranks.TILE.rows, "BLOCK_N": ranks.TILE.columns}
    options = {"num_warps": ranks.TILE.warps, "maxnreg": ranks.REGISTERS}
    for what in (TRUTH, COUNTS, BEST):
        chosen = constants | {"WHAT": what, "BIASED": what == COUNTS}
        yield built(tile_kernel, named, chosen, **options)
    constants = {"OWN": True, "BLOCK": ranks.MARKS}
    yield built(mark_kernel, types("first last base codes entity excluded"), constants, num_warps=4)


def main() -> None:
    done = [*of_the_distance(), *of_a_batch(), *of_a_step(), *of_the_table()]
    done += [*of_the_other_parameters(), *of_ranks()]
    assert all(binary.asm["cubin"] for binary in done)
    print(f"{len(done)} kernels")


if __name__ == "__main__":
    main()
