"""Presets reduce to the models they are named after, wherever ``docs/presets.md`` says exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from golde.config import ModelConfig
from golde.errors import ConfigError
from golde.geometry import Signature
from golde.models import GoldE
from golde.models.presets import PRESETS, house, preset, quat, refh, rotate, rotate3d, roth
from oracles import cartan_dieudonne, normal, randomised, set_rows

ENTITIES = 5
DOCS = Path(__file__).parents[2] / "docs" / "presets.md"


def build(config: ModelConfig) -> GoldE:
    model: GoldE = randomised(GoldE(config, ENTITIES, 1), seed=1)
    return model


def table(model: GoldE, direction: int = 0) -> Tensor:
    """Scores of every head with every tail."""
    return model.score(torch.arange(ENTITIES), torch.full((ENTITIES,), direction)).detach()


def agree(model: GoldE, expected: Tensor) -> None:
    """The preset's score is the original's, asked from either side."""
    torch.testing.assert_close(table(model), expected, rtol=1e-7, atol=1e-6)
    if not model.config.reciprocal:
        torch.testing.assert_close(table(model, 1).T, expected, rtol=1e-7, atol=1e-6)


def points(model: GoldE, size: int) -> tuple[Tensor, Tensor]:
    """Heads (B, 1, M, K) and tails (1, N, M, K)."""
    rows = model.entity.detach().unflatten(-1, (-1, size))
    return rows.unsqueeze(1), rows.unsqueeze(0)


def turning_rows(angle: Tensor) -> Tensor:
    """Two reflections that rotate the plane by ``angle``, or with one row fewer reflect it."""
    second = torch.stack((torch.cos(angle / 2), torch.sin(angle / 2)))
    return torch.stack((torch.tensor([1.0, 0.0], dtype=angle.dtype), second))


def hamilton(x: Tensor, y: Tensor) -> Tensor:
    """The product of quaternions in the last axis."""
    a, b, c, d = x.unbind(-1)
    e, f, g, h = y.unbind(-1)
    return torch.stack(
        (
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ),
        -1,
    )


def linear(f: Callable[[Tensor], Tensor], size: int) -> Tensor:
    """The matrix of a linear map given as a function of rows."""
    return f(torch.eye(size, dtype=torch.float64)).T


def test_rotate_is_rotate() -> None:
    model = build(rotate(6))
    angles = normal(3, seed=2)
    for component, angle in enumerate(angles):
        set_rows(model.groups[0].rotation, 0, component, turning_rows(angle))
    h, t = (torch.view_as_complex(part) for part in points(model, 2))
    agree(model, -(h * torch.exp(1j * angles) - t).abs().sum(-1))


def test_rotate3d_is_a_rotation_by_quaternions() -> None:
    model = build(rotate3d(6))
    q = torch.nn.functional.normalize(normal(2, 4, seed=3), dim=-1)
    conjugate = q * torch.tensor([1.0, -1.0, -1.0, -1.0], dtype=torch.float64)

    def turned(v: Tensor, component: int) -> Tensor:
        pure = torch.nn.functional.pad(v, (1, 0))
        return hamilton(hamilton(q[component].expand_as(pure), pure), conjugate[component])[..., 1:]

    for component in range(2):
        R = linear(lambda v, c=component: turned(v, c), 3)
        ones = torch.ones(3, dtype=torch.float64)
        set_rows(model.groups[0].rotation, 0, component, cartan_dieudonne(R, ones, 2))
    h, t = points(model, 3)
    moved = torch.stack([turned(h[..., c, :], c) for c in range(2)], -2)
    agree(model, -(moved - t).norm(dim=-1).sum(-1))


def test_quat_is_twice_the_inner_product_once_biases_are_squared_norms() -> None:
    model = build(quat(8))
    r = torch.nn.functional.normalize(normal(2, 4, seed=4), dim=-1)
    for component in range(2):
        R = linear(lambda v, c=component: hamilton(v, r[c].expand_as(v)), 4)
        ones = torch.ones(4, dtype=torch.float64)
        set_rows(model.groups[0].rotation, 0, component, cartan_dieudonne(R, ones, 4))
    with torch.no_grad():
        for bias in (model.query_bias, model.answer_bias):
            bias.copy_(model.entity.square().sum(-1))
    h, t = points(model, 4)
    agree(model, 2 * (hamilton(h, r.expand_as(h)) * t).sum((-1, -2)))


@pytest.mark.parametrize(("k", "reflections"), [(3, 2), (4, 4)])
def test_house_is_house_r(k: int, reflections: int) -> None:
    """The original multiplies unit vectors from the last to the first."""
    model = build(house(2 * k, dimension=k))
    r = torch.nn.functional.normalize(normal(2, reflections, k, seed=5), dim=-1)
    for component in range(2):
        set_rows(model.groups[0].rotation, 0, component, r[component].flip(0))
    h, t = points(model, k)
    for j in reversed(range(reflections)):
        h = h - 2 * (r[:, j] * h).sum(-1, keepdim=True) * r[:, j]
    agree(model, -(h - t).norm(dim=-1).sum(-1))


def mobius(x: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """``x ⊕_c y`` in the Poincaré ball of curvature −c."""
    xy, xx, yy = ((a * b).sum(-1, keepdim=True) for a, b in ((x, y), (x, x), (y, y)))
    numerator = (1 + 2 * c * xy + c * yy) * x + (1 - c * xx) * y
    return numerator / (1 + 2 * c * xy + c**2 * xx * yy)


def ball(v: Tensor, c: Tensor) -> Tensor:
    """``exp₀(v) = tanh(√c ‖v‖) v / (√c ‖v‖)``."""
    norm = c.sqrt() * v.norm(dim=-1, keepdim=True)
    return norm.tanh() * v / norm


@pytest.mark.parametrize("name", ["roth", "refh"])
def test_roth_and_refh_in_the_poincare_ball(name: str) -> None:
    """``−d_c(r ⊕ Rot(h), t)² + b_h + b_t`` with tangent vectors half as long as ours, c = 1/β."""
    model = build({"roth": roth, "refh": refh}[name](6))
    group, angles, shift = model.groups[0], normal(3, seed=6), normal(6, seed=7, scale=0.4)
    c = 1 / group.maps(torch.tensor([0])).beta.detach()[0, 0]
    with torch.no_grad():
        model.entity.mul_(0.5)
        for i, angle in enumerate(angles):
            cos, sin = torch.cos(angle / 2), torch.sin(angle / 2)
            if name == "roth":
                group.rotation.U[0, 0, i] = turning_rows(angle)
            else:
                group.rotation.U[0, 0, i, 0] = torch.stack((-sin, cos))
        norm = shift.norm()
        group.b[0, 0] = torch.sinh(2 * c.sqrt() * norm) * shift / norm
    cos, sin = torch.cos(angles), torch.sin(angles)
    flip = 1.0 if name == "roth" else -1.0
    givens = torch.stack((cos, -flip * sin, sin, flip * cos), -1).view(3, 2, 2)
    h, t = (part.squeeze(-2) / 2 for part in points(model, 6))
    turned = torch.einsum("kij,...kj->...ki", givens, h.unflatten(-1, (3, 2))).flatten(-2)

    def score(q: Tensor) -> Tensor:
        apart = mobius(-q, ball(t, c), c).norm(dim=-1)
        distance = 2 / c.sqrt() * torch.atanh(c.sqrt() * apart)
        return (model.query_bias.unsqueeze(1) + model.answer_bias - distance**2).detach()

    turned, r = ball(turned, c), ball(shift, c)
    agree(model, score(mobius(r.expand_as(turned), turned, c)))
    # The original adds on the other side: as far from the origin, but another point.
    other = mobius(turned, r.expand_as(turned), c)
    assert (table(model) - score(other)).abs().max() > 0.05


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("numbers", [8, 13, 128])
def test_presets_use_the_budget_and_no_more(name: str, numbers: int) -> None:
    chosen = preset(name, numbers)
    stored = chosen.numbers or Signature.parse(chosen.signature or "").numbers
    assert numbers / 2 <= stored <= numbers


def test_presets_refuse_what_they_cannot_build() -> None:
    with pytest.raises(ConfigError, match="did you mean 'rotate'"):
        preset("rotatE", 8)
    with pytest.raises(ConfigError, match="'house' needs at least 8 numbers per entity, not 7"):
        preset("house", 7)


def test_every_preset_has_its_line_in_the_docs() -> None:
    rows = [
        line.split("|")[1].strip() for line in DOCS.read_text("utf-8").splitlines() if "|" in line
    ]
    assert rows[2:] == [f"`{name}`" for name in PRESETS]
