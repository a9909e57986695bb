"""What the service answers is what the library finds."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

import golde
from golde.analysis.components import distances_from
from golde.analysis.coordinates import view
from golde.analysis.explain import explain
from golde.analysis.relation_geometry import relation_geometry
from golde.data.graph import KnowledgeGraph
from golde.inference import Run
from golde.service.app import create_app
from tiny import quick

RING = "/api/v1/runs/ring"

QUERIES = [
    {"head": "e3", "relation": "next"},
    {"relation": "back", "tail": "e3"},
    {"head": "e3", "tail": "e4"},
]


def asked(client: TestClient, path: str, **given: Any) -> Any:
    answer = client.post(path, json=given["json"]) if "json" in given else client.get(path, **given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_runs_are_listed_with_what_they_are(client: TestClient, run: Run) -> None:
    ours, baseline = asked(client, "/api/v1/runs")["runs"]
    assert (ours["name"], ours["graph"], ours["entities"]) == ("ring", "ring", 40)
    assert (ours["signature"], ours["calibrated"], ours["prior"]) == ("P3x2 Q4x2", True, None)
    assert ours["components"] == ["P3 #1", "P3 #2", "Q4 #1", "Q4 #2"]
    assert ours["digest"] == run.graph.digest
    assert ours["metrics"]["test"]["mrr"] == run.folder.metrics()["test"]["metrics"]["both"]["mrr"]
    assert (baseline["kind"], baseline["components"], baseline["calibrated"]) == (
        "transe",
        [],
        False,
    )


@pytest.mark.parametrize("query", QUERIES, ids=["tails", "heads", "relations"])
@pytest.mark.parametrize("known", ["mark", "keep", "drop"])
def test_predictions_are_those_of_the_run(
    client: TestClient, run: Run, query: dict[str, str], known: str
) -> None:
    found = asked(client, f"{RING}/predict", json={**query, "known": known, "top": 7})["answers"]
    wanted = run.predict(**query, known=known, top=7)
    (slot,) = {"head", "relation", "tail"} - set(query)
    assert [one["answer"] for one in found] == [getattr(one, slot) for one in wanted]
    assert [one["known"] for one in found] == [one.known for one in wanted]
    for name in ("score", "probability"):
        assert [one[name] for one in found] == pytest.approx([getattr(one, name) for one in wanted])


def test_questions_asked_together_are_answered_as_if_alone(client: TestClient, run: Run) -> None:
    """Of several kinds and sizes, to two runs, by many at a time."""
    questions = [
        (
            "ring" if i % 3 else "transe",
            {"head": f"e{i % 20}", "relation": "next", "top": 1 + i % 9},
        )
        for i in range(60)
    ]

    def ask(question: tuple[str, dict[str, Any]]) -> list[str]:
        name, body = question
        found = asked(client, f"/api/v1/runs/{name}/predict", json=body)["answers"]
        return [one["answer"] for one in found]

    alone = [ask(question) for question in questions]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(ask, questions))
    assert together == alone
    for (name, body), found in zip(questions, together, strict=True):
        if name == "ring":
            assert found == [one.tail for one in run.predict(**body)]


def test_scores_are_those_of_the_run(client: TestClient, run: Run) -> None:
    facts = [("e1", "next", "e2"), ("e5", "back", "e9")]
    keys = ("head", "relation", "tail")
    body = {"facts": [dict(zip(keys, fact, strict=True)) for fact in facts]}
    found = asked(client, f"{RING}/score", json=body)["facts"]
    assert [tuple(one[key] for key in keys) for one in found] == facts
    assert [one["score"] for one in found] == pytest.approx(run.score(facts))
    assert [one["probability"] for one in found] == pytest.approx(run.probability(facts))
    baseline = asked(client, "/api/v1/runs/transe/score", json=body)["facts"]
    assert [one["probability"] for one in baseline] == [None, None]


def test_reasons_are_those_of_explain(client: TestClient, run: Run) -> None:
    fact = {"head": "e1", "relation": "next", "tail": "e2"}
    found = asked(client, f"{RING}/explain", json={**fact, "top": 2})
    wanted = explain(run.model, run.graph, **fact, top=2).as_dict()
    assert found["supporting"] == json.loads(json.dumps(wanted["supporting"]))
    assert found["rules"] == json.loads(json.dumps(wanted["rules"][:2]))
    assert (found["known"], found["tail_rank"]) == (wanted["known"], wanted["tail_rank"])
    assert found["probability"] == pytest.approx(run.probability([tuple(fact.values())])[0])


def test_neighbours_are_the_nearest(client: TestClient, run: Run) -> None:
    found = asked(client, f"{RING}/neighbours", params={"entity": "e7", "top": 200})["neighbours"]
    far = distances_from(run.model, run.graph.entities.id("e7"))
    assert len(found) == 39
    for one in found:
        wanted = float(far[run.graph.entities.id(one["name"])])
        assert one["distance"] == pytest.approx(wanted)
    assert [one["distance"] for one in found] == sorted(one["distance"] for one in found)


def test_facts_are_all_that_the_graph_says_of_an_entity(client: TestClient, run: Run) -> None:
    graph = run.graph
    about = {
        (graph.entities[h], graph.relations[r], graph.entities[t], split)
        for split in ("train", "valid", "test")
        for h, r, t in graph.split(split).tolist()
        if "e3" in (graph.entities[h], graph.entities[t])
    }
    found = asked(client, f"{RING}/facts", params={"entity": "e3"})
    rows = [(one["head"], one["relation"], one["tail"], one["split"]) for one in found["facts"]]
    assert set(rows) == about
    assert len(rows) == found["total"] == len(about)
    page = asked(client, f"{RING}/facts", params={"entity": "e3", "limit": 1, "offset": 1})
    assert page["facts"] == found["facts"][1:2]
    assert page["total"] == len(about)
    some = asked(client, f"{RING}/facts", params={"entity": "e3", "relation": "back"})
    assert {one["relation"] for one in some["facts"]} == {"back"}


def test_a_fact_with_itself_is_counted_once(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "a"), ("a", "r", "b"), ("b", "r", "b")])
    golde.train(graph, tmp_path / "loops", quick(), device="cpu")
    app = create_app({"loops": tmp_path / "loops"}, lambda path: golde.load_run(path, device="cpu"))
    with TestClient(app, base_url="http://localhost") as client:
        for one in asked(client, "/api/v1/runs/loops/entities")["found"]:
            found = asked(client, "/api/v1/runs/loops/facts", params={"entity": one["name"]})
            assert one["facts"] == found["total"] == 2


def test_names_are_searched(client: TestClient) -> None:
    found = asked(client, f"{RING}/entities", params={"q": "E1", "limit": 3})["found"]
    assert found[0] == {"name": "e1", "facts": 4, "match": "exact"}
    assert {one["match"] for one in found[1:]} == {"start"}
    assert len(found) == 3
    relations = asked(client, f"{RING}/relations")["found"]
    assert {one["name"]: one["facts"] for one in relations} == {"next": 40, "back": 40}


def test_geometry_is_that_of_the_library(client: TestClient, run: Run) -> None:
    wanted = {one.relation: one for one in relation_geometry(run.model, run.graph)}
    found = asked(client, f"{RING}/geometry")["relations"]
    assert {one["relation"] for one in found} == set(wanted)
    assert found[0]["groups"] == wanted[found[0]["relation"]].as_dict(components=False)["groups"]
    detail = asked(client, f"{RING}/relation", params={"relation": "next"})
    elliptic = detail["geometry"]["groups"][0]
    assert elliptic["weights"]["components"] == wanted["next"].groups[0].weights.tolist()
    inverse = [rule for rule in detail["rules"] if rule["kind"] == "inverse"]
    assert [(rule["body"], rule["head"]) for rule in inverse] in ([], [(["back"], "next")])
    baseline = asked(client, "/api/v1/runs/transe/relation", params={"relation": "next"})
    assert baseline["geometry"] is None


@pytest.mark.parametrize("component", [1, 4], ids=["ellipsoid", "disk"])
@pytest.mark.parametrize("moved", [False, True])
def test_points_are_those_of_the_view(
    client: TestClient, run: Run, component: int, moved: bool
) -> None:
    params = {"component": component, "relation": "next", "moved": moved}
    found = asked(client, f"{RING}/points", params=params)
    entities = torch.arange(40)
    relation = run.graph.relations.id("next")
    wanted = view(run.model, component - 1, entities, relation, moved=moved)
    axes = [found[axis] for axis in "xyz" if found[axis] is not None]
    assert np.allclose(np.array(axes).T, wanted.points.numpy())
    assert found["name"] == list(run.graph.entities)
    assert found["view"] == ("ellipsoid", "disk")[component > 2]
    assert found["semi_axes"] == wanted.semi_axes
    assert found["curvature"] == wanted.curvature


def test_binary_points_are_the_same_numbers(client: TestClient) -> None:
    params: dict[str, Any] = {"component": 3, "limit": 6}
    wanted = asked(client, f"{RING}/points", params=params)
    content = client.get(f"{RING}/points", params=params | {"format": "binary"}).content
    length = int.from_bytes(content[4:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert content[:4] == b"GLD1"
    assert (header["count"], header["groups"]) == (6, wanted["groups"])
    at = 8 + length
    assert at % 4 == 0
    for column in header["columns"]:
        kind = {"int32": "<i4", "float32": "<f4"}[column["type"]]
        values = np.frombuffer(content, kind, header["count"], at)
        assert values.tolist() == pytest.approx(wanted[column["name"]])
        at += 4 * header["count"]
    assert at == len(content)


def test_points_of_one_side_and_their_groups(client: TestClient, run: Run) -> None:
    graph, r = run.graph, run.graph.relations.id("next")
    params = {"component": 1, "relation": "next", "which": "tails", "group_by": "next"}
    found = asked(client, f"{RING}/points", params=params)
    assert set(found["id"]) == set(graph.train[graph.train[:, 1] == r, 2].tolist())
    after = {f"e{i}": f"e{(i + 1) % 40}" for i in range(40)}
    groups = {n: found["groups"][g] for n, g in zip(found["name"], found["group"], strict=True)}
    named = {name: group for name, group in groups.items() if group != "other"}
    assert len(found["groups"]) == 21
    assert named
    assert named == {name: after[name] for name in named}


def test_two_runs_are_compared_by_the_ranks_they_keep(client: TestClient, run: Run) -> None:
    body = {"first": "ring", "second": "transe"}
    found = asked(client, "/api/v1/compare", json=body)
    assert [one["run"] for one in found["runs"]] == ["ring", "transe"]
    mrr = [one["metrics"]["both"]["mrr"] for one in found["runs"]]
    assert mrr[0] == run.folder.metrics()["test"]["metrics"]["both"]["mrr"]
    difference = found["runs"][1]["against_first"]["mrr"]["difference"]
    assert difference == pytest.approx(mrr[1] - mrr[0])
    for wrong, status in (
        ({"first": "ring", "second": "ring"}, 422),
        ({"first": "ring", "second": "other"}, 404),
        ({**body, "split": "train"}, 409),  # no ranks are kept
    ):
        answer = client.post("/api/v1/compare", json=wrong)
        assert answer.status_code == status
        assert str(run.folder.path.parent) not in answer.text  # no business of who asks
