"""What is exported reads back without GoldE, and says all that scores depend on."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from safetensors import safe_open
from tiny_graph import graph

from golde.api import train
from golde.config import Config
from golde.data.graph import KnowledgeGraph
from golde.data.vocabulary import Vocabulary
from golde.errors import GoldeError, MissingExtraError
from golde.inference import Run
from golde.inference.export import FORMATS

FACTS = [("p0", "next", "p1"), ("q2", "knows", "p3"), ("p6", "twin", "q6")]


def read(path: Path, format: str) -> tuple[list[str], NDArray[np.float32]]:
    """Names and rows of the entity table."""
    if format == "safetensors":
        with safe_open(path, "np") as file:
            names = json.loads(file.metadata()["json"])["entities"]
            return names, file.get_tensor("entity")
    if format == "npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["entities"].tolist(), arrays["entity"]
    if format == "parquet":
        table = parquet.read_table(path)
        assert pyarrow.types.is_fixed_size_list(table.schema.field("embedding").type)
        assert table.schema.metadata[b"signature"] == b"P3x2 Q4x2"
        assert table["id"].to_pylist() == list(range(len(table)))
        rows = np.array(table["embedding"].to_pylist(), dtype=np.float32)
        return table["name"].to_pylist(), rows
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="," if format == "csv" else "\t"))
    if format == "csv":
        header, *lines = lines
        assert header == ["name", *(f"x{i}" for i in range(1, len(header)))]
    return [line[0] for line in lines], np.array([line[1:] for line in lines], dtype=np.float32)


@pytest.mark.parametrize("format", FORMATS)
def test_the_entity_table_comes_back_exactly(
    run: Run, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.inference.export._ROWS", 5)  # more than one block
    path = tmp_path / "out"
    path.write_text("what was here before")
    run.export(path, format)
    names, table = read(path, format)
    assert tuple(names) == run.graph.entities.names
    assert np.array_equal(table, run.model.entity.detach().numpy())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("format", ["npz", "safetensors"])
def test_scores_follow_from_the_export_alone(run: Run, tmp_path: Path, format: str) -> None:
    """The distances of Eq. 10 and 13 in plain float64, from the arrays of the file."""
    path = tmp_path / "out"
    run.export(path, format)
    if format == "npz":
        arrays = dict(np.load(path, allow_pickle=False))
        relations = arrays["relations"].tolist()
    else:
        with safe_open(path, "np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = json.loads(file.metadata()["json"])
        relations = about["relations"]
        assert about["signature"] == "P3x2 Q4x2"
        assert about["reciprocal"] is True
    assert len(arrays["relation.0.G"]) == 2 * len(relations)
    table = arrays["entity"].astype(float)
    for (head, relation, tail), score in zip(FACTS, run.score(FACTS), strict=True):
        h, t = (table[run.graph.entities.id(name)] for name in (head, tail))
        r = relations.index(relation)
        elliptic, p = arrays["relation.0.G"][r], arrays["relation.0.p"][r]
        x = np.einsum("mij,mj->mi", elliptic, h[:6].reshape(2, 3))
        total = np.sqrt((p * (x - t[:6].reshape(2, 3)) ** 2).sum(-1)).sum()
        for m in range(2):
            part = slice(6 + 3 * m, 9 + 3 * m)
            Q, b, beta = (arrays[f"relation.1.{name}"][r, m] for name in ("Q", "b", "beta"))
            total += hyperbolic_distance(h[part], t[part], Q, b, beta)
        assert score == pytest.approx(-total, rel=1e-4)


def hyperbolic_distance(
    h: NDArray[np.float64],
    t: NDArray[np.float64],
    Q: NDArray[np.float32],
    b: NDArray[np.float32],
    beta: float,
) -> float:
    def exp(e: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        norm = np.linalg.norm(e) / np.sqrt(beta)
        return np.cosh(norm), np.sinh(norm) * e / np.linalg.norm(e)

    (x0, x), (y0, y) = exp(h), exp(t)
    gamma = np.sqrt(1 + b @ b)
    x0, x = gamma * x0 + b @ x, x + b * x0 + (b @ x) * b / (1 + gamma)
    return float(np.sqrt(beta) * np.arccosh(x0 * y0 - (Q @ x) @ y))


def test_one_euclidean_component_can_be_searched_by_plain_distance(tmp_path: Path) -> None:
    """As docs/ecosystem.md has it for vector stores: the nearest to G_r e_h are the answers."""
    space = {"signature": "E8", "loop_bias": False}
    config = Config().with_values(model=space, training={"steps": 20})
    run = train(graph(), tmp_path / "run", config, device="cpu")
    run.export(tmp_path / "a.npz", "npz")
    run.export(tmp_path / "a.parquet", "parquet")
    arrays = np.load(tmp_path / "a.npz", allow_pickle=False)
    store = parquet.read_table(tmp_path / "a.parquet")
    rows = np.array(store["embedding"].to_pylist())
    head, relation = run.graph.entities.id("p0"), run.graph.relations.id("next")
    query = arrays["relation.0.G"][relation, 0] @ rows[head]
    order = np.linalg.norm(rows - query, axis=1).argsort()
    found = [store["name"][int(i)].as_py() for i in order]
    assert found == [answer.tail for answer in run.predict("p0", "next", top=len(rows))]


def test_biases_and_double_precision_are_kept(paper_run: Run, tmp_path: Path) -> None:
    paper_run.export(tmp_path / "a.npz", "npz")
    paper_run.export(tmp_path / "a.parquet", "parquet")
    arrays = np.load(tmp_path / "a.npz", allow_pickle=False)
    assert arrays["entity"].dtype == np.float64
    for name in ("query_bias", "answer_bias"):
        assert np.array_equal(arrays[name], getattr(paper_run.model, name).detach().numpy())
    assert len(arrays["relation.1.beta"]) == len(arrays["relations"])  # one map for both directions
    rows = parquet.read_table(tmp_path / "a.parquet")["embedding"].to_pylist()
    assert np.array_equal(np.array(rows), arrays["entity"])


def test_an_unknown_format_names_the_known_ones(run: Run, tmp_path: Path) -> None:
    with pytest.raises(GoldeError, match=r"'hdf5'; use one of safetensors, npz, parquet, csv, tsv"):
        run.export(tmp_path / "out", "hdf5")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("place", ["nowhere/out", ".", "/"])
def test_a_path_that_cannot_be_written(run: Run, tmp_path: Path, format: str, place: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(GoldeError, match="cannot be written"):
        run.export(tmp_path / "folder" / place, format)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("name", ["model.safetensors", "graph.safetensors"])
def test_a_run_is_not_written_over(run: Run, name: str) -> None:
    before = (run.folder.path / name).read_bytes()
    with pytest.raises(GoldeError, match="of the run itself"):
        run.export(run.folder.path / ".." / run.folder.path.name / name, "safetensors")
    assert (run.folder.path / name).read_bytes() == before


def test_parquet_names_its_extra(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"exporting Parquet needs the extra 'tables'"):
        run.export(tmp_path / "out", "parquet")


def test_a_name_that_does_not_fit_a_line_of_tsv(run: Run, tmp_path: Path) -> None:
    other = Run(run.folder)
    names = ['two\nlines, "quoted"', *run.graph.entities[1:]]
    other.graph = KnowledgeGraph(
        Vocabulary(names), run.graph.relations, run.graph.train, run.graph.valid, run.graph.test
    )
    with pytest.raises(GoldeError, match="holds a tab or line break"):
        other.export(tmp_path / "out.tsv", "tsv")
    assert not list(tmp_path.iterdir())
    other.export(tmp_path / "out.parquet", "parquet")
    assert read(tmp_path / "out.parquet", "parquet")[0] == names
    other.export(tmp_path / "out.csv", "csv")
    assert read(tmp_path / "out.csv", "csv")[0] == names


def test_names_too_long_for_a_safetensors_header(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("golde.inference.export._HEADER_LIMIT", 50)
    with pytest.raises(GoldeError, match="do not fit the header"):
        run.export(tmp_path / "out", "safetensors")
