"""The paths of the service, and what each leads to.

Annotations are not put off here as elsewhere: FastAPI reads them, and they name what is imported inside.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from golde._version import __version__
from golde.errors import GoldeError, MissingExtraError
from golde.service import answers, bodies, requests, schema, shapes
from golde.service.batching import Batcher
from golde.service.exploring import add_page
from golde.service.guard import Access, Guard
from golde.service.jobs import Jobs
from golde.service.limits import Limits
from golde.service.metrics import Metrics
from golde.service.packing import MEDIA_TYPE, packed
from golde.service.problems import Problem
from golde.service.reference import STYLE, reference
from golde.service.shelf import Open, Shelf

if TYPE_CHECKING:
    from fastapi import FastAPI

_LOG = logging.getLogger("golde.service")

_PREFIX = "/api/v1"

_TITLE = "GoldE"
_ABOUT = "Ask trained runs for facts, reasons and their geometry."

_PROBLEMS: dict[int, str] = {
    400: "The request is no proper HTTP or JSON.",
    401: "The token is missing or wrong.",
    403: "A page from elsewhere asks.",
    404: "There is no such run, entity or relation.",
    405: "The path knows no such method.",
    408: "The request did not arrive in time.",
    409: "The run lacks what is asked for.",
    413: "The request is too large.",
    415: "The body is not declared as JSON.",
    421: "The Host header does not name this service.",
    422: "The request breaks a rule, which the message names.",
    503: "There is no room or time for the request now; see Retry-After.",
}


class Service:
    """Runs, the queue in front of them, and longer jobs."""

    def __init__(self, shelf: Shelf, limits: Limits) -> None:
        self.shelf, self.limits, self.metrics = shelf, limits, Metrics()
        self.quick = Jobs(limits.quick_jobs, limits)  # not to wait behind the others
        self.jobs = Jobs(limits.jobs, limits)
        self.batcher: Batcher | None = None

    @asynccontextmanager
    async def running(self, app: Any) -> AsyncIterator[None]:
        """From the first request to the last."""
        self.batcher = batcher = Batcher(
            answers.compute,
            self.limits,
            at_once=lambda key: min(self.limits.batch, key.run.at_once),
            observe=self.metrics.batches.observe,
        )
        self.metrics.watch(
            lambda: len(batcher.waiting),
            lambda: self.quick.open + self.jobs.open,
            lambda: sum(self.shelf.trouble(name) is not None for name in self.shelf.names),
        )
        batcher.start()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            self.quick.stop()
            self.jobs.stop()
            await batcher.stop()

    async def ask(self, key: answers.Key, question: Any) -> Any:
        """The answer to a question, scored with others."""
        if self.batcher is None:
            raise RuntimeError("the service is not running")
        return await self.batcher.ask(key, question)

    async def _watch(self) -> None:
        """Take up new models as they appear."""
        while True:
            await asyncio.sleep(self.limits.poll_seconds)
            try:
                events = await asyncio.to_thread(self.shelf.refresh)
            except Exception:  # whatever was in a folder, it must not end the watch
                _LOG.exception("the folders of runs could not be looked at")
                continue
            for name, well in events:
                self.metrics.reloads.labels(name, "ok" if well else "failed").inc()


def create_app(
    folders: Mapping[str, Path],
    open_run: Open,
    *,
    access: Access = Access(),  # noqa: B008 (it is frozen)
    limits: Limits = Limits(),  # noqa: B008
) -> "Guard":
    """The service over runs in folders, as an ASGI application; every run is opened first."""
    try:
        import prometheus_client  # noqa: F401
        from fastapi import FastAPI
    except ImportError:
        raise MissingExtraError("a service", "serve") from None
    service = Service(Shelf(folders, open_run), limits)
    app = FastAPI(
        title=_TITLE,
        description=_ABOUT,
        version=__version__,
        docs_url=None,  # the usual page loads from elsewhere
        redoc_url=None,
        lifespan=service.running,
        redirect_slashes=False,
        responses={
            status: {"model": bodies.ErrorBody, "description": text}
            for status, text in _PROBLEMS.items()
        },
    )
    _add_errors(app, service)
    _add_questions(app, service, folders=access.only_here)
    _add_geometry(app, service)
    _add_names(app, service)
    _add_state(app, service)
    add_page(app, service, _PREFIX)
    return Guard(app, access, limits, service.metrics)


def _add_questions(app: "FastAPI", service: Service, *, folders: bool) -> None:
    """Runs, with or without their ``folders``, and what is asked of their models."""
    shelf, jobs = service.shelf, service.jobs

    @app.get(f"{_PREFIX}/runs", summary="The runs that are served", tags=["runs"])
    async def runs() -> bodies.RunList:
        return answers.runs(shelf, __version__, folders=folders)

    @app.post(f"{_PREFIX}/runs/{{run}}/predict", summary="Answer a query", tags=["questions"])
    async def predict(run: schema.RunName, asked: requests.PredictRequest) -> bodies.PredictAnswer:
        """The most plausible heads, relations or tails: whichever of the three is left out."""
        opened = shelf[run]
        key, question = answers.question(opened, asked)
        return answers.predicted(opened, asked, await service.ask(key, question))

    @app.post(f"{_PREFIX}/runs/{{run}}/score", summary="Score facts", tags=["questions"])
    async def score(run: schema.RunName, asked: requests.ScoreRequest) -> bodies.ScoreAnswer:
        """The forward score of each fact, with its probability if the run is calibrated."""
        opened = shelf[run]
        key, facts = answers.facts_to_score(opened, asked)
        return answers.scored(opened, await service.ask(key, facts))

    @app.post(f"{_PREFIX}/runs/{{run}}/explain", summary="Explain a fact", tags=["questions"])
    async def explain(run: schema.RunName, asked: requests.ExplainRequest) -> bodies.ExplainAnswer:
        """Rules that imply a fact, near facts, and the components that carried its score."""
        opened = shelf[run]
        return await jobs.do(lambda progress: answers.explained(opened, asked, progress))

    @app.post(f"{_PREFIX}/compare", summary="Compare two runs", tags=["runs"])
    async def compare(asked: requests.CompareRequest) -> bodies.CompareAnswer:
        """Figures of two runs on one graph, and whether their differences mean anything."""
        return await jobs.do(lambda progress: answers.compared(shelf, asked, progress))


def _add_geometry(app: "FastAPI", service: Service) -> None:
    """What the models look like."""
    from fastapi import Query, Response

    shelf, quick, jobs = service.shelf, service.quick, service.jobs

    @app.get(
        f"{_PREFIX}/runs/{{run}}/geometry",
        summary="The maps of all relations",
        tags=["geometry"],
        response_model_exclude_none=True,
    )
    async def geometry(run: schema.RunName) -> shapes.GeometryAnswer:
        """Curvature, scaling, boost, angles and involution error of each relation."""
        opened = shelf[run]
        return await jobs.do(lambda progress: answers.geometry(opened, progress))

    @app.get(
        f"{_PREFIX}/runs/{{run}}/relation", summary="One relation in detail", tags=["geometry"]
    )
    async def relation(
        run: schema.RunName, asked: Annotated[requests.RelationQuery, Query()]
    ) -> shapes.RelationAnswer:
        """Its map in every component, and the rules that lead to it."""
        opened = shelf[run]
        return await jobs.do(
            lambda progress: answers.relation_in_detail(opened, asked.relation, progress)
        )

    @app.get(
        f"{_PREFIX}/runs/{{run}}/points",
        summary="Entities in one component",
        tags=["geometry"],
        response_model=shapes.PointsAnswer,
        responses={
            200: {
                "description": "Arrays, or with format=binary a header and columns.",
                "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
            }
        },
    )
    async def points(run: schema.RunName, asked: Annotated[requests.PointsQuery, Query()]) -> Any:
        """Places in the Poincaré disk of a hyperbolic component, or along three axes of any other."""
        opened = shelf[run]

        def work(_: Any) -> Response:
            found = answers.points(opened, asked)
            if asked.format == "binary":
                header = answers.points_header(opened, found)
                return Response(packed(header, found.columns), media_type=MEDIA_TYPE)
            body = answers.points_body(opened, found).model_dump_json()
            return Response(body, media_type="application/json")

        return await quick.do(work)

    @app.get(
        f"{_PREFIX}/runs/{{run}}/neighbours", summary="Entities near another", tags=["geometry"]
    )
    async def neighbours(
        run: schema.RunName, asked: Annotated[requests.NeighboursQuery, Query()]
    ) -> bodies.NeighboursAnswer:
        """The nearest in tangent coordinates, with no relation in between."""
        opened = shelf[run]
        return await quick.do(lambda _: answers.neighbours(opened, asked))


def _add_names(app: "FastAPI", service: Service) -> None:
    """The names and facts of the graphs."""
    from fastapi import Query

    shelf, quick = service.shelf, service.quick

    @app.get(f"{_PREFIX}/runs/{{run}}/entities", summary="Search entities", tags=["names"])
    async def entities(
        run: schema.RunName, asked: Annotated[requests.SearchQuery, Query()]
    ) -> bodies.SearchAnswer:
        """As they are typed: beginnings, words, pieces, then names with a slip; frequent ones first."""
        one = shelf[run]
        return await quick.do(lambda _: answers.search(one, one.entities, one.entity_facts, asked))

    @app.get(f"{_PREFIX}/runs/{{run}}/relations", summary="Search relations", tags=["names"])
    async def relations(
        run: schema.RunName, asked: Annotated[requests.SearchQuery, Query()]
    ) -> bodies.SearchAnswer:
        """The same for relations; with nothing asked, the most frequent ones."""
        one = shelf[run]
        return await quick.do(
            lambda _: answers.search(one, one.relations, one.relation_facts, asked)
        )

    @app.get(f"{_PREFIX}/runs/{{run}}/facts", summary="Facts about an entity", tags=["names"])
    async def facts(
        run: schema.RunName, asked: Annotated[requests.FactsQuery, Query()]
    ) -> bodies.FactsAnswer:
        """What the graph says of an entity, in all splits."""
        one = shelf[run]
        return await quick.do(lambda _: answers.facts_about(one, asked))


def _add_state(app: "FastAPI", service: Service) -> None:
    """How the service is, and what it can be asked."""
    from fastapi import Request, Response

    @app.get(
        "/health",
        summary="Whether the service can answer",
        tags=["service"],
        response_model_exclude_none=True,
    )
    async def health(request: Request) -> bodies.Health:
        """Without the token only the status."""
        shelf = service.shelf
        runs = [
            bodies.RunHealth(name=name, revision=shelf[name].revision, trouble=shelf.trouble(name))
            for name in shelf.names
        ]
        troubled = any(run.trouble is not None for run in runs)
        status: Any = "degraded" if troubled else "ok"
        if not request.scope["golde.trusted"]:
            return bodies.Health(status=status)
        waiting = 0 if service.batcher is None else len(service.batcher.waiting)
        return bodies.Health(status=status, version=__version__, waiting=waiting, runs=runs)

    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        tags=["service"],
        response_class=Response,
        responses={
            200: {
                "description": "Prometheus's text format.",
                "content": {"text/plain": {"example": "golde_open_jobs 0.0"}},
            }
        },
    )
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return Response(reference(app.openapi(), request.headers["host"]), media_type="text/html")

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(STYLE, media_type="text/css")


def _add_errors(app: "FastAPI", service: Service) -> None:
    """Everything that goes wrong is told in one form."""
    from fastapi import Request, Response
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def told(problem: Problem) -> Response:
        return Response(
            problem.body(),
            problem.status,
            dict(problem.headers),
            media_type="application/json",
        )

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return told(error)

    @app.exception_handler(answers.UnknownNameError)
    async def unknown(request: Request, error: answers.UnknownNameError) -> Response:
        try:
            return told(await service.quick.do(lambda _: error.problem()))
        except Problem as problem:
            return told(problem)

    @app.exception_handler(GoldeError)
    async def refused(request: Request, error: GoldeError) -> Response:
        return told(Problem(422, "refused", service.shelf.told(str(error))))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        kind = request.headers.get("content-type", "")
        if found[0]["loc"] == ("body",) and "json" not in kind.lower():
            return told(
                Problem(
                    415, "no_json", "send the body as JSON, with Content-Type: application/json"
                )
            )
        return told(Problem(422, "invalid", described(found)))

    @app.exception_handler(HTTPException)
    async def unserved(request: Request, error: HTTPException) -> Response:
        code, message = {
            404: ("unknown_path", "there is nothing here; GET /openapi.json lists what there is"),
            400: ("no_json", "the body cannot be read; send JSON in UTF-8"),
            405: ("method", "this path does not know that method; GET /openapi.json lists them"),
        }.get(error.status_code, ("bad_request", str(error.detail)))
        headers = list((error.headers or {}).items())
        return told(Problem(error.status_code, code, message, headers=headers))


def described(errors: Sequence[Mapping[str, Any]], most: int = 5) -> str:
    """What is wrong with a request, in one sentence; what it held is not repeated."""
    found = []
    for one in errors[:most]:
        if one["type"] == "json_invalid":
            return f"the body is no JSON: {one['ctx']['error']} at character {one['loc'][-1]}"
        place = ".".join(str(part) for part in one["loc"][1:]) or str(one["loc"][0])
        found.append(f"{place[:100]}: {one['msg']}")
    if len(errors) > most:
        found.append(f"and {len(errors) - most} more")
    return "; ".join(found)
