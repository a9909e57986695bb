"""The page as one file: its scripts, its style and its data inside, and nothing that could load more.

Each module of the page becomes a function that returns what the module exports, in an order in which all that
one imports stands before it. Of JavaScript only two forms at the start of a line are understood, and the page
keeps to them: ``import { a, b } from "./file.js";`` and ``export function|const|class name``.

Names in the data may be anything. In a script element only ``<`` could end it or begin another, and JSON can
say that sign without writing it. No script but the one inside may run: the policy names its digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from golde.service.assets import START, assets

_MAIN = "main.js"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export ((?:async )?function|const|class) (\w+)",
    re.MULTILINE,
)
_STYLE_LINK = '<link rel="stylesheet" href="/page/style.css">\n'
_SCRIPT_LINK = '<script type="module" src="/page/main.js"></script>\n'


def bundled(data: Mapping[str, Any], title: str) -> str:
    """The page with data inside, in HTML."""
    style, script = _asset("style.css"), bundled_script()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    )
    end = (
        f'<script type="application/json" id="embedded">{harmless(data)}</script>\n'
        f'<script type="module">{script}</script>\n'
    )
    page = assets()[START][0].decode()
    page = page.replace(_SCRIPT_LINK, "").replace(_STYLE_LINK, head)
    page = page.replace("<title>GoldE</title>", f"<title>{escape(title)}</title>")
    return page.replace("</body>", end + "</body>")


def bundled_script() -> str:
    """All modules of the page as one script."""
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        if name in modules:
            return
        text = _asset(name)
        for found in _IMPORT.finditer(text):
            add(found[2])
        text = _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {_variable(found[2])};\n", text)
        exported = ", ".join(found[2] for found in _EXPORT.finditer(text))
        text = _EXPORT.sub(r"\1 \2", text)
        modules[name] = (
            f"const {_variable(name)} = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();\n"
        )

    add(_MAIN)
    return "\n" + "".join(modules.values())


def harmless(data: Any) -> str:
    """JSON that stays inside a script element, whatever names are in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.encode("utf-8", "replace").decode()  # a name may hold half of a character
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _asset(name: str) -> str:
    return assets()[f"/page/{name}"][0].decode()


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js")


def _digest(text: str) -> str:
    """As a Content-Security-Policy names a script or style inside the page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
