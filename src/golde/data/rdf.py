"""Facts from N-Triples and Turtle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from golde.data.columns import Columns
from golde.data.files import Report, line_text, opened, suffix_of
from golde.data.notes import note
from golde.data.numbering import FileFacts, NameIndex, no_facts
from golde.errors import DataError, GoldeError, MissingExtraError

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

_ROWS = 1 << 16
_ANONYMOUS = re.compile("[0-9a-f]{24,32}")  # what the parser calls a blank node without a label


def read_rdf(path: Path, columns: Columns | None, index: NameIndex, report: Report) -> FileFacts:
    """Facts between resources; those whose object is a literal are dropped and counted.

    So are the parts of reified statements, as ``golde complete`` writes them: they speak of facts.
    """
    try:
        import pyoxigraph as rdf
    except ImportError:
        raise MissingExtraError(f"reading {path.name}", "rdf") from None
    if columns is not None:
        raise GoldeError(
            f"{path}: columns are for tables; RDF says which is which (omit --columns)"
        )

    anonymous: dict[str, str] = {}

    def name(node: rdf.NamedNode | rdf.BlankNode) -> str:
        # Blank nodes without a label are named by their place, so that two readings agree.
        if isinstance(node, rdf.BlankNode):
            if not _ANONYMOUS.fullmatch(node.value):
                return f"_:{node.value}"
            return anonymous.setdefault(node.value, f"_:{path.name}#{len(anonymous) + 1}")
        iri: str = node.value
        return iri

    triples, literals, parts = [no_facts()], 0, 0
    rows: tuple[list[str], list[str], list[str]] = [], [], []
    heads, relations, tails = rows
    turtle = suffix_of(path) == ".ttl"
    try:
        with opened(path, report) as stream:
            syntax = rdf.RdfFormat.TURTLE if turtle else rdf.RdfFormat.N_TRIPLES
            for fact in rdf.parse(cast(BinaryIO, stream), format=syntax):
                if not isinstance(fact.object, rdf.NamedNode | rdf.BlankNode):
                    literals += 1
                    continue
                if _speaks_of_a_fact(fact.predicate.value, fact.object.value):
                    parts += 1
                    continue
                heads.append(name(fact.subject))
                relations.append(fact.predicate.value)
                tails.append(name(fact.object))
                if len(heads) == _ROWS:
                    triples.append(index.number(*rows))
                    for column in rows:
                        column.clear()
    except SyntaxError as error:
        raise DataError(
            path,
            f"is not {'Turtle' if turtle else 'N-Triples'} ({error.msg.partition(': ')[2]})",
            line=error.lineno,
            text=line_text(path, error.lineno or 0),
            fix="correct the statement",
        ) from error
    triples.append(index.number(*rows))
    notes = note(path.name, literals, "literal", "dropped")
    notes += note(path.name, parts, "part", "of reified statements dropped")
    return FileFacts(path, np.concatenate(triples), None, notes)


def _speaks_of_a_fact(predicate: str, object: str) -> bool:
    """Whether a triple is one of the four that reify another."""
    if predicate == f"{RDF}type":
        return object == f"{RDF}Statement"
    return predicate in (f"{RDF}subject", f"{RDF}predicate", f"{RDF}object")


def line_of(path: Path, iri: str) -> int | None:
    """The first line that writes an IRI, in full or by the part that follows a prefix."""
    local = re.split("[/#:]", iri)[-1]
    for written in (f"<{iri}>".encode(), f":{local}".encode()):
        with opened(path) as stream:
            for number, line in enumerate(stream, 1):
                if written in line:
                    return number
    return None
