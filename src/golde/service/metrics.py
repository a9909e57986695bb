"""What the service counts of itself, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from golde._version import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counters of one service, in a registry of its own. Needs the extra ``serve``.

    Labels are paths as they are declared, never as they were asked for, so that there are only so many.
    """

    def __init__(self) -> None:
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            Info,
            PlatformCollector,
            ProcessCollector,
        )

        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        Info("golde", "The service.", registry=registry).info({"version": __version__})
        self.requests = Counter(
            "golde_requests", "Requests answered.", ("method", "path", "status"), registry=registry
        )
        self.seconds = Histogram(
            "golde_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ("path",),
            buckets=SECONDS,
            registry=registry,
        )
        self.batches = Histogram(
            "golde_batch_questions",
            "Questions scored together.",
            buckets=BATCHES,
            registry=registry,
        )
        self.reloads = Counter(
            "golde_reloads", "Runs opened again.", ("run", "outcome"), registry=registry
        )
        self.waiting = Gauge(
            "golde_waiting_questions", "Questions in the queue.", registry=registry
        )
        self.jobs = Gauge("golde_open_jobs", "Longer requests under way.", registry=registry)
        self.in_trouble = Gauge(
            "golde_runs_in_trouble",
            "Runs served from older files than their folders have.",
            registry=registry,
        )

    def watch(
        self, waiting: Callable[[], int], jobs: Callable[[], int], trouble: Callable[[], int]
    ) -> None:
        """Ask for what is counted elsewhere whenever figures are read."""
        self.waiting.set_function(waiting)
        self.jobs.set_function(jobs)
        self.in_trouble.set_function(trouble)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        self.requests.labels(method, path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """All figures in Prometheus's text format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)
