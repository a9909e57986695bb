"""Predicted links for the stores that graphs come from: N-Triples for RDF, a CSV for Neo4j.

nt      Every link as a triple, and beside it a reified statement (``rdf:Statement`` with ``rdf:subject``,
        ``rdf:predicate`` and ``rdf:object``) that bears ``urn:golde:score`` and, of a calibrated run,
        ``urn:golde:probability``, both ``xsd:double``. Plain N-Triples 1.1, no RDF-star.
neo4j   Relationships as neo4j-admin imports them: ``:START_ID,:END_ID,:TYPE,score:float`` and, of a
        calibrated run, ``probability:float``, whether or not there are links.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from golde.data.rdf import RDF
from golde.errors import GoldeError
from golde.inference.queries import Prediction
from golde.runs.atomic import replacing

FORMATS = ("nt", "neo4j")

BASE = "urn:golde:name:"
"""Where names that are no IRIs are put unless told otherwise."""

SCORE, PROBABILITY = "urn:golde:score", "urn:golde:probability"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"

_SIGN = (
    r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2}"
    r"|[\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd])"
)
# With an authority only if it is a plain one: user names and ports have rules of their own.
_IRI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*:(?://[A-Za-z0-9\-._~]+(?::[0-9]+)?(?=[/?#]|$)|(?!//)){_SIGN}*"
    rf"(?:\?(?:{_SIGN}|\?)*)?(?:#(?:{_SIGN}|\?)*)?"
)


def write_links(
    path: str | Path,
    links: Sequence[Prediction],
    format: str,
    base: str = BASE,
    *,
    calibrated: bool = False,
) -> None:
    """Write predicted links in one of ``FORMATS``; ``base`` is for names that are no IRIs, in ``nt``.

    ``calibrated`` says whether the links are those of a run that gives probabilities.
    """
    if format not in FORMATS:
        raise GoldeError(f"unknown format of links {format!r}; use one of {', '.join(FORMATS)}")
    checked_base(base)
    with (
        replacing(Path(path)) as partial,
        partial.open("w", encoding="utf-8", newline="") as file,
    ):
        if format == "nt":
            _ntriples(file, links, base)
        else:
            _neo4j(file, links, calibrated)


def checked_base(base: str) -> str:
    """An absolute IRI that names can be appended to, or an error."""
    if not _IRI.fullmatch(base):
        raise GoldeError(f"base {base!r} is no absolute IRI; give one such as https://example.org/")
    return base


def joins_names(base: str) -> bool:
    """Whether a base ends as those do that names are put after: at a boundary."""
    return base.endswith(("/", "#", ":", "="))


def iri(name: str, base: str = BASE) -> str:
    """A name as an IRI: itself if it is one, else percent-encoded after ``base``.

    So is the name of a blank node, ``_:b1``: outside the file it was read from it means nothing.
    """
    return name if _IRI.fullmatch(name) else base + quote(name, safe="")


def _ntriples(file: TextIO, links: Sequence[Prediction], base: str) -> None:
    known: dict[str, str] = {}

    def node(name: str) -> str:
        return known.setdefault(name, f"<{iri(name, base)}>")

    for number, link in enumerate(links, 1):
        head, relation, tail = map(node, link.fact)
        values = {SCORE: link.score, PROBABILITY: link.probability}
        file.write(f"{head} {relation} {tail} .\n")
        for predicate, object in (
            (f"{RDF}type", f"<{RDF}Statement>"),
            (f"{RDF}subject", head),
            (f"{RDF}predicate", relation),
            (f"{RDF}object", tail),
            *((k, f'"{v!r}"^^<{_DOUBLE}>') for k, v in values.items() if v is not None),
        ):
            file.write(f"_:link{number} <{predicate}> {object} .\n")


def _neo4j(file: TextIO, links: Sequence[Prediction], calibrated: bool) -> None:
    table = csv.writer(file, lineterminator="\n")
    header = [":START_ID", ":END_ID", ":TYPE", "score:float"]
    table.writerow([*header, "probability:float"] if calibrated else header)
    for link in links:
        row = [link.head, link.tail, link.relation, link.score]
        table.writerow([*row, link.probability] if calibrated else row)
