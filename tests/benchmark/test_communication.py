"""The communication model: what is planted is found, and what is known of few processes holds."""

from __future__ import annotations

import random

import pytest

from golde.benchmark.communication import Exchange, Link, fit_line, fit_link


def test_latency_and_bandwidth_are_found_in_times_that_scatter() -> None:
    draw, planted = random.Random(0), Link(latency=3e-4, bandwidth=2e9)
    sizes = [2**power for power in range(6, 25)]
    measured = [
        (size, planted.seconds(Exchange("add_up", size), 2) * draw.uniform(0.9, 1.1))
        for size in sizes
        for _ in range(3)
    ]
    found = fit_link(measured)
    assert found.latency == pytest.approx(planted.latency, rel=0.1)
    assert found.bandwidth == pytest.approx(planted.bandwidth, rel=0.1)


def test_a_line_is_fitted_to_small_and_large_alike() -> None:
    assert fit_line([(1.0, 3.0), (10.0, 21.0), (1000.0, 2001.0)]) == pytest.approx((1.0, 2.0))


def test_exchanges_among_few_cost_what_the_algorithms_move() -> None:
    link = Link(latency=1.0, bandwidth=1.0)
    for kind in ("add_up", "collect"):
        assert link.seconds(Exchange(kind, 8), 1) == 0
        assert link.seconds(Exchange(kind, 8), 2) == 1 + 8
    assert link.seconds(Exchange("add_up", 8), 4) == 2 + 2 * 8 * 3 / 4
    assert link.seconds(Exchange("collect", 8), 4) == 2 + 3 * 8
    steps = [Exchange("add_up", 8), Exchange("collect", 8)]
    assert link.step_seconds(steps, 2) == 18
