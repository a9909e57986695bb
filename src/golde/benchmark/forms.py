"""The forms of a step that are compared, and what makes the library take each of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from golde.benchmark.gathered import Gathered
from golde.benchmark.task import RATE, Task
from golde.kernels import Core, Finish, can_compile, pairwise_reference
from golde.kernels.triton import has_triton
from golde.models import GoldE
from golde.training.update import Outcome

Reference = Callable[[Core, Core, Finish, int], Tensor]


class Step(Protocol):
    """A form at work; every call makes one step."""

    model: GoldE
    columns: int  # negatives a query

    def __call__(self, number: int) -> Outcome: ...

    def settle(self) -> None:
        """Bring the parameters up to date, before they are read."""


class Shared:
    """The step of training as a run makes it: all queries of a batch share their negatives.

    But for repeated draws, which a run leaves out on a CPU and a GPU masks: here they are masked on both.
    """

    def __init__(
        self, task: Task, *, capture: bool, prepare: Callable[[GoldE], None] = lambda model: None
    ) -> None:
        self.model, self.columns = task.model(), task.sampler().negatives
        prepare(self.model)
        self.update = task.update(self.model, capture=capture)

    def __call__(self, number: int) -> Outcome:
        return self.update(number, RATE)

    def settle(self) -> None:
        self.update.settle()


class Form(NamedTuple):
    """How to build a step; that and the steps themselves happen inside ``settings``.

    ``comparable`` is the task at which ``build_comparable`` should do the same as the plain form, and
    ``missing`` says why a form cannot be had here.
    """

    build: Callable[..., Step]  # (task, capture=…)
    settings: Callable[[], AbstractContextManager[None]]
    missing: Callable[[], str | None]
    comparable: Callable[[Task], Task]
    build_comparable: Callable[..., Step]


def form(
    build: Callable[..., Step],
    settings: Callable[[], AbstractContextManager[None]],
    missing: Callable[[], str | None] = lambda: None,
) -> Form:
    """A form that can be compared as it stands."""
    return Form(build, settings, missing, lambda task: task, build)


@contextmanager
def plain(reference: Reference = pairwise_reference) -> Iterator[None]:
    """No fused kernel, no blocks: every distance from the plain form, on any device."""
    module: Any = import_module("golde.kernels.pairwise")
    before = os.environ.get("GOLDE_KERNELS")
    names = ("pairwise_reference", "_blocked")
    kept = {name: getattr(module, name) for name in names}

    def unblocked(
        finish: Finish, norm: int, _: bool, split: int, q: Tensor, c: Tensor, *scalars: Tensor
    ) -> Tensor:
        return reference(Core(q, scalars[:split]), Core(c, scalars[split:]), finish, norm)

    os.environ["GOLDE_KERNELS"] = "plain"
    module.pairwise_reference, module._blocked = reference, unblocked
    try:
        yield
    finally:
        for name in names:
            setattr(module, name, kept[name])
        del os.environ["GOLDE_KERNELS"]
        if before is not None:
            os.environ["GOLDE_KERNELS"] = before


@contextmanager
def plain_compiled() -> Iterator[None]:
    """The plain form with the distance compiled."""
    with plain(torch.compile(pairwise_reference, dynamic=False)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for the gradient of what is no leaf, and warns
        try:
            yield
        finally:
            torch.compiler.reset()  # other sizes start anew instead of running into a limit


def compile_sides(model: GoldE) -> None:
    """Compile what leads up to the distance too; not on a CPU, where shapes change with every batch."""
    if model.entity.is_cuda:
        compiled: Any = model
        compiled.queries = torch.compile(model.queries, dynamic=False)
        compiled.candidates = torch.compile(model.candidates, dynamic=False)


def compile_blocks(model: GoldE) -> None:
    """Compile the pointwise work of the blocks."""
    model.compiled = True


def no_compiler() -> str | None:
    return None if can_compile() else "torch.compile does not work here (it needs a C++ compiler)"


def no_kernels() -> str | None:
    if has_triton():
        return None
    return "needs Triton, a GPU of compute capability 8.0, and GOLDE_KERNELS other than plain"


COMPILED = partial(Shared, prepare=compile_sides)

GATHERED = Form(Gathered, plain, lambda: None, Gathered.comparable, partial(Gathered, shared=True))

ON_GPU = {
    "gathered": GATHERED,
    "plain": form(Shared, plain),
    "plain compiled": form(COMPILED, plain_compiled, no_kernels),
    "fused": form(Shared, nullcontext, no_kernels),
}

ON_CPU = {
    "gathered": GATHERED,
    "plain": form(Shared, plain),
    "plain compiled": form(COMPILED, plain_compiled, no_compiler),
    "blocked": form(Shared, nullcontext),
    "blocked compiled": form(partial(Shared, prepare=compile_blocks), nullcontext, no_compiler),
}


def forms(device: torch.device) -> dict[str, Form]:
    """All that can be compared on a device."""
    return ON_GPU if device.type == "cuda" else ON_CPU


def fastest(device: torch.device) -> str:
    """The form that a run takes on a device; on a CPU a long one compiles it."""
    return "fused" if device.type == "cuda" else "blocked"
