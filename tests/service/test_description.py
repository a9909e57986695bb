"""The description of the service is complete, its examples fit it, and its page needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from golde.service import bodies, requests, shapes, suggestions


@pytest.fixture(scope="module")
def api(client: TestClient) -> Any:
    return client.get("/openapi.json").json()


def operations(api: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in api["paths"].items():
        for method, one in methods.items():
            yield f"{method.upper()} {path}", one


def resolved(api: Any, schema: Any) -> Any:
    if "$ref" in schema:
        return api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def test_everything_that_was_promised_is_there(api: Any) -> None:
    run = "/api/v1/runs/{run}"
    assert {name for name, _ in operations(api)} == {
        "GET /api/v1/runs",
        "POST /api/v1/compare",
        *(f"POST {run}/{what}" for what in ("predict", "score", "explain")),
        *(f"GET {run}/{what}" for what in ("neighbours", "geometry", "relation", "points")),
        *(f"GET {run}/{what}" for what in ("entities", "relations", "facts", "suggestions")),
        f"POST {run}/lookup",
        "GET /health",
        "GET /metrics",
    }


def test_every_operation_has_examples_and_words(api: Any) -> None:
    lacking = []
    for name, one in operations(api):
        assert one["summary"]
        for parameter in one.get("parameters", ()):
            schema = parameter["schema"]
            if not parameter.get("description") or not (
                schema.get("examples") or parameter.get("examples")
            ):
                lacking.append(f"{name}: {parameter['name']}")
        if "requestBody" in one:
            schema = one["requestBody"]["content"]["application/json"]["schema"]
            if not resolved(api, schema).get("examples"):
                lacking.append(f"{name}: request")
        for kind, content in one["responses"]["200"]["content"].items():
            schema = content.get("schema", {})
            if kind != "application/octet-stream" and not (
                content.get("example") or resolved(api, schema).get("examples")
            ):
                lacking.append(f"{name}: {kind}")
        assert {"401", "413", "422", "503"} <= set(one["responses"])
    assert not lacking


MODELS = [
    model
    for module in (requests, bodies, shapes, suggestions)
    for model in vars(module).values()
    if isinstance(model, type)
    and issubclass(model, BaseModel)
    and "examples" in (model.model_config.get("json_schema_extra") or {})
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_examples_are_what_they_stand_for(model: Any) -> None:
    for example in model.model_config["json_schema_extra"]["examples"]:
        model.model_validate(example)


def test_the_page_needs_nothing_else(client: TestClient, api: Any) -> None:
    page = client.get("/docs").text
    assert not re.search(r"https?://|<script|\son\w+=|style=", page)
    links = set(re.findall(r'(?:href|src)="([^"]+)"', page))
    assert links == {"/docs.css", "/openapi.json", "data:,"}
    for link in links - {"data:,"}:
        assert client.get(link).status_code == 200
    for name, _ in operations(api):
        assert name in page
    elsewhere = client.get("/docs", headers={"Host": "localhost:8123"}).text
    assert "curl &#x27;localhost:8123/api/v1/runs&#x27;" in elsewhere
