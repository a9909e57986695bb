"""The page at ``/``, and the paths that only it needs.

Annotations are not put off here: FastAPI reads them.
"""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from golde.service import answers, schema, suggestions
from golde.service.assets import START, assets

if TYPE_CHECKING:
    from fastapi import FastAPI


def add_page(app: "FastAPI", service: Any, prefix: str) -> None:
    """Add the page to a service (``golde.service.app.Service``)."""
    from fastapi import Query, Response

    shelf, quick = service.shelf, service.quick

    @app.get(
        f"{prefix}/runs/{{run}}/suggestions",
        summary="Facts that an entity may lack",
        tags=["questions"],
    )
    async def suggest(
        run: schema.RunName, asked: Annotated[suggestions.SuggestionsQuery, Query()]
    ) -> suggestions.SuggestionsAnswer:
        """The best answers of each side of a relation that entities of its kind are on."""
        opened = shelf[run]
        wanted = await quick.do(
            lambda _: suggestions.questions(opened, asked.entity, asked.roles, asked.top)
        )
        key = answers.Key(opened, "drop")
        found = await asyncio.gather(*(service.ask(key, question) for _, question in wanted))
        roles = [role for role, _ in wanted]
        return suggestions.suggested(opened, asked.entity, list(zip(roles, found, strict=True)))

    @app.post(f"{prefix}/runs/{{run}}/lookup", summary="Entities by number or name", tags=["names"])
    async def lookup(
        run: schema.RunName, asked: suggestions.LookupRequest
    ) -> suggestions.LookupAnswer:
        """Points have numbers; this tells their names, and the numbers of names."""
        return suggestions.looked_up(shelf[run], asked)

    def add(path: str, content: bytes, kind: str) -> None:
        @app.get(path, include_in_schema=False)
        async def asset() -> Response:
            return Response(content, media_type=kind)

    for path, (content, kind) in assets().items():
        add(path, content, kind)
    add("/", *assets()[START])
