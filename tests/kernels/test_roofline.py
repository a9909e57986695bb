"""Ceilings and counts of the roofline: the kernels compute what they say, and shares are of the time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType

import golde
from oracles import normal

if find_spec("triton") is None:
    pytest.skip("Triton is not installed (extra: kernels)", allow_module_level=True)

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
KERNELS = Path(golde.__file__).parent / "kernels" / "triton"

with pytest.MonkeyPatch.context() as patch:
    if not CUDA:
        patch.setenv("TRITON_INTERPRET", "1")  # read when kernels are defined; see conftest
    patch.syspath_prepend(str(BENCHMARKS))
    ceilings: Any = import_module("ceilings")
    operations: Any = import_module("operations")
    roofline: Any = import_module("gpu_roofline")


@pytest.fixture(autouse=True)
def _interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    if not CUDA:
        monkeypatch.setenv("TRITON_INTERPRET", "1")


def test_copying_copies() -> None:
    source = torch.arange(2500.0, device=DEVICE)
    target = torch.zeros_like(source)
    ceilings.copy(source, target)
    assert torch.equal(source, target)


def test_chains_have_their_length() -> None:
    """Closed forms: ``x ← a x + b`` at a = 1, and the fixed point of ``x ← 1/√2^x``."""
    out = torch.empty(ceilings.BLOCK, device=DEVICE)
    ceilings.multiply_add(out, 1.0, 0.5, 2)
    start = torch.arange(float(ceilings.BLOCK), device=DEVICE)
    assert torch.equal(out, start + 0.5 * 2 * ceilings.UNROLLED)
    ceilings.special(out, 2)
    assert torch.allclose(out, (-0.5 * out).exp2(), atol=1e-5)


def test_products_are_those_of_the_transpose() -> None:
    a, b = (normal(64, 64, seed=seed).float().to(DEVICE) for seed in range(2))
    out = torch.empty_like(a)
    ceilings.product(a, b, out, ceilings.Tile(32, 64, 16, 4, 2))
    assert torch.allclose(out, a @ b.mT, atol=0.05)


@pytest.mark.slow
def test_the_kernels_compile_for_a_gpu(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("compile_ceilings.py")],
        env=environment | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["FFMA", "MUFU", "HGMMA"]


def test_counts_grow_with_what_they_are_counts_of() -> None:
    step = operations.shape("P10x36 Q13x36", 1000, 3000, 22, 200_000)
    elliptic, hyperbolic = step.groups
    assert elliptic == (36, 10, 21, False)
    assert hyperbolic == (36, 12, 13, True)
    assert step.drawn == 5000 * 792
    pairs = 36 * 1000 * 3000
    forward, backward = operations.distances(step), operations.distance_gradients(step)
    assert forward.tensor == 3 * 2 * (21 + 13) * pairs
    assert backward.tensor == 3 * forward.tensor
    assert forward.special == backward.special == (1 + 3) * pairs
    larger = step._replace(B=2000, N=6000, directions=44, dense=400_000)
    for name, count in operations.COUNTED.items():
        more = asdict(count(larger))
        for kind, number in asdict(count(step)).items():
            assert more[kind] > number or number == 0, (name, kind)
    whole, parts = asdict(forward), [step._replace(groups=(g,)) for g in step.groups]
    table = 4 * 1000 * 3000  # written once, not once a group
    halves = [asdict(operations.distances(part)) for part in parts]
    assert whole["bytes"] == sum(half["bytes"] for half in halves) - table
    assert whole["fp32"] == sum(half["fp32"] for half in halves)


def test_what_is_counted_is_there() -> None:
    """A kernel that was renamed would silently lose its counts."""
    sources = [path.read_text("utf-8") for path in KERNELS.glob("*.py")]
    for name in operations.COUNTED:
        assert any(f"def {name}(" in source for source in sources), name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("forward_kernel", "forward_kernel"),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
            "(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
            "namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)0, false> >(int)",
            "multi_tensor_apply_kernel FusedAdamMathFunctor",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
            "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)",
            "vectorized_elementwise_kernel FillFunctor",
        ),
        (
            "void at::native::(anonymous namespace)::indexFuncLargeIndex<float, long, 2>(long)",
            "indexFuncLargeIndex",
        ),
        ("void at::native::vectorized_gather_kernel<16, long>(char*)", "vectorized_gather_kernel"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm>(int)", "Kernel2 cutlass_80_simt_sgemm"),
    ],
)
def test_kernels_are_known_by_short_names(name: str, short: str) -> None:
    assert operations.named(name) == short


def event(name: str, microseconds: float, **changes: Any) -> Any:
    kind = {"device_type": DeviceType.CUDA, "is_user_annotation": False} | changes
    return SimpleNamespace(
        name=name, time_range=SimpleNamespace(elapsed_us=lambda: microseconds), **kind
    )


def test_a_row_has_time_share_and_the_nearest_ceiling() -> None:
    events = [
        *[event("forward_kernel", 150.0)] * 4,
        event("forward_kernel", 9e9, device_type=DeviceType.CPU),
        event("Optimizer.step", 9e9, is_user_annotation=True),
        *[event("void cutlass::Kernel2<float>(int)", 100.0)] * 2,
        *[event("tiny", 1.0)] * 10,
    ]
    step = operations.shape("Q13x36", 1000, 3000, 22, 0)
    most = operations.Operations(bytes=4e12, fp32=33e12, special=4e12, tensor=4e14)
    rows = roofline.rows(roofline.kernel_times(events), 2, 1.0, step, most)
    forward, other, small, rest = rows
    assert [row["kernel"] for row in rows] == [
        *("forward_kernel", "Kernel2", "all smaller ones", "between kernels")
    ]
    assert forward["launches"] == 2
    assert (forward["ms"], forward["share"]) == (0.3, 0.3)
    special = 3 * 36 * 1000 * 3000
    assert forward["operations"]["special"] == special
    assert forward["reached"]["special"] == pytest.approx(special / 0.3e-3 / 4e12, rel=1e-3)
    assert forward["bound"] == "fp32"
    assert "operations" not in other
    assert small["ms"] == pytest.approx(0.005)
    assert rest["ms"] == pytest.approx(1 - 0.3 - 0.1 - 0.005)
    slow = roofline.rows({"forward_kernel": roofline.Launched(1, 1e9)}, 1, 1e6, step, most)
    assert slow[0]["bound"] is None
