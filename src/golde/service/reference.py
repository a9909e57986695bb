"""A page that lists what the service can be asked, made from its OpenAPI description. It loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

STYLE = """\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
table { display: block; overflow-x: auto; }
h3 code { font-size: 1rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .7rem; background: #8881; border-radius: .4rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #8884;
  vertical-align: top; }
"""

Schema = Mapping[str, Any]


def reference(api: Schema, host: str) -> str:
    """The page in HTML, for those who call the service ``host``."""
    info = api["info"]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(info['title'])}: API</title>",
        '<link rel="icon" href="data:,">',
        '<link rel="stylesheet" href="/docs.css"></head><body><main>',
        f"<h1>{escape(info['title'])} {escape(info['version'])}: API</h1>",
        f"<p>{escape(info['description'])} All of it for programs: ",
        '<a href="/openapi.json">openapi.json</a>.</p>',
    ]
    for tag in dict.fromkeys(tag for _, _, one in _operations(api) for tag in one["tags"]):
        parts.append(f"<h2>{escape(tag.capitalize())}</h2>")
        for path, method, one in _operations(api):
            if tag in one["tags"]:
                parts.append(_operation(api, host, path, method, one))
    return "\n".join([*parts, "</main></body></html>\n"])


def _operations(api: Schema) -> Iterator[tuple[str, str, Any]]:
    for path, methods in api["paths"].items():
        for method, one in methods.items():
            yield path, method, one


def _operation(api: Schema, host: str, path: str, method: str, one: Schema) -> str:
    body = _body(api, one)
    rows = [
        (each["name"], each.get("description", ""), _kind(each["schema"]))
        for each in one.get("parameters", ())
    ]
    rows += [
        (name, each.get("description", ""), _kind(each))
        for name, each in (body or {}).get("properties", {}).items()
    ]
    parts = [
        f"<h3>{escape(one['summary'])}</h3>",
        f"<p><code>{method.upper()} {escape(path)}</code></p>",
        f"<p>{escape(one.get('description', ''))}</p>",
    ]
    if rows:
        cells = (
            f"<tr><th scope=row><code>{escape(name)}</code><td>{escape(text)}<td>{escape(kind)}"
            for name, text, kind in rows
        )
        parts.append(f"<table>{''.join(cells)}</table>")
    parts.append(f"<pre><code>{escape(_command(host, path, one, body))}</code></pre>")
    answer = one["responses"]["200"]["content"].get("application/json", {}).get("schema", {})
    for example in _resolved(api, answer).get("examples", ())[:1]:
        shown = json.dumps(example, indent=2, ensure_ascii=False)
        parts.append(f"<details><summary>Answer</summary><pre>{escape(shown)}</pre></details>")
    return "\n".join(parts)


def _body(api: Schema, one: Schema) -> Schema | None:
    content = one.get("requestBody", {}).get("content", {}).get("application/json")
    return None if content is None else _resolved(api, content["schema"])


def _resolved(api: Schema, schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Schema = api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _kind(schema: Schema) -> str:
    """A type in a few words."""
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    limits = [f"{schema[key]:,.0f}" for key in ("minimum", "maximum") if key in schema]
    kind = str(schema.get("type", "object"))
    return f"{kind}, {' to '.join(limits)}" if limits else kind


def _command(host: str, path: str, one: Schema, body: Schema | None) -> str:
    """How to ask for it from a shell."""
    given = {
        each["name"]: each["schema"].get("examples", each.get("examples", [""]))[0]
        for each in one.get("parameters", ())
        if each["in"] == "query" and each.get("required")
    }
    for each in one.get("parameters", ()):
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", quote("world"))
    address = f"{host}{path}" + (f"?{urlencode(given)}" if given else "")
    words = ["curl", f"'{address}'"]
    if body is not None:
        example = json.dumps(body["examples"][0], ensure_ascii=False)
        words += ["--json", f"'{example}'"]
    return " ".join(words)
