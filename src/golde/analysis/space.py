"""A flat map of the learned space, on which entities that are close there are close too."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from golde.models import GoldE, Model


def entity_distances(model: Model, entity: Tensor) -> Tensor:
    """``Σ_i ‖x_i − y_i‖`` over the components, between all pairs of the given entities, (n, n).

    In tangent coordinates, so with no relation in it: each relation has weights and a curvature of
    its own, and none of them is the distance between two entities.
    """
    rows = model.entity.detach()[entity.to(model.entity.device)].double().cpu()
    sizes = [rows.shape[1]]
    if isinstance(model, GoldE):
        sizes = [term.numbers for term in model.signature for _ in range(term.count)]
    return sum((torch.cdist(part, part) for part in rows.split(sizes, 1)), torch.zeros(()).double())


def neighbour_map(distances: Tensor, *, perplexity: float = 20.0, steps: int = 750) -> Tensor:
    """Points in the plane with about the same neighbours as in the space, (n, 2).

    t-SNE (van der Maaten and Hinton, 2008): minimise ``KL(P ‖ Q)`` for ``P`` from Gaussians around
    each point, as wide as gives it ``perplexity`` neighbours, and ``Q ∝ 1 / (1 + ‖u_i − u_j‖²)``.
    It starts from the two main axes of the distances, so the same distances give the same map.
    """
    n = len(distances)
    similar = _neighbour_shares(distances.double(), min(perplexity, max(1.0, (n - 1) / 3)))
    similar = (similar + similar.T) / (2 * n)
    points, velocity = 1e-2 * _main_axes(distances.double()), torch.zeros(n, 2).double()
    gain = torch.ones_like(points)
    for step in range(steps):
        early = step < steps // 3  # at first clusters are drawn together, to sort themselves out
        kernel = 1 / (1 + _squares(points))
        kernel.fill_diagonal_(0)
        pull = ((12 if early else 1) * similar - kernel / kernel.sum()) * kernel
        gradient = 4 * (pull.sum(1, keepdim=True) * points - pull @ points)
        gain = torch.where(gradient * velocity > 0, 0.8 * gain, gain + 0.2).clamp(min=0.01)
        velocity = (0.5 if early else 0.8) * velocity - max(n / 12, 50.0) * gain * gradient
        points = points + velocity
        points = points - points.mean(0)
    return points


def _neighbour_shares(distances: Tensor, perplexity: float) -> Tensor:
    """Each row: Gaussian weights ``exp(−d² / 2σ²)``, σ such that their entropy is log(perplexity)."""
    squares = distances.square()
    low, high = torch.zeros(len(squares), 1).double(), torch.full((len(squares), 1), torch.inf)
    sharpness = 1 / squares.mean(1, keepdim=True).clamp(min=1e-12)  # 1 / 2σ²
    apart = torch.eye(len(squares)).bool()
    for _ in range(64):
        weights = torch.softmax((-sharpness * squares).masked_fill(apart, -torch.inf), 1)
        entropy = torch.special.entr(weights).sum(1, keepdim=True)
        wide = entropy > math.log(perplexity)
        low, high = torch.where(wide, sharpness, low), torch.where(wide, high, sharpness)
        sharpness = torch.where(high.isinf(), 2 * sharpness, (low + high) / 2)
    return weights


def _main_axes(distances: Tensor) -> Tensor:
    """Classical scaling to two dimensions, unit variance, signs fixed."""
    squares = distances.square()
    inner = -0.5 * (squares - squares.mean(0) - squares.mean(1, keepdim=True) + squares.mean())
    axes: Tensor = torch.linalg.eigh(inner).eigenvectors[:, -2:].flip(1)
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return axes * signs * math.sqrt(len(distances))


def _squares(points: Tensor) -> Tensor:
    return (points.unsqueeze(0) - points.unsqueeze(1)).square().sum(-1)
