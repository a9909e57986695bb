"""Levers that are no settings: each does what it says, the study of them goes on, and how it is written."""

from __future__ import annotations

import itertools
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from golde.config import Config
from golde.kernels.triton.support import KNOWN
from golde.models import GoldE
from golde.models.kinds import KINDS
from golde.report.benchmarks import section
from golde.report.other_levers import LEVERS, other_levers
from golde.training import loop, train, update
from golde.training.loop import Training
from golde.training.replay import EAGER, Replay
from golde.training.sampling import Batch
from golde.training.step import step_loss
from tiny import quick, ring

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__
    for name in ("levers", "other_levers", "trainings"):
        sys.modules.pop(name, None)


@pytest.fixture
def levers(load: Any) -> Any:
    return load("levers")


def model(make: Callable[..., GoldE], signature: str, **settings: Any) -> GoldE:
    """Of nine entities and three relations, in double precision, every parameter drawn at random."""
    config = Config().with_values(model={"signature": signature} | settings).model
    made = make(config, 9, 3).double()
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in made.parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(0.6 * drawn)
    return made


ENTITY = torch.tensor([0, 3, 5, 2])
DIRECTION = torch.tensor([0, 5, 2, 1])
ANSWER = torch.tensor([1, 3, 8, 0])  # the second fact leads from an entity to itself
CANDIDATES = torch.tensor([0, 4, 6, 7, 8])


def scores(made: GoldE, rows: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Of answers, of the queries' own entities and of candidates, as in a step."""
    if rows is None:
        rows = made.entity[torch.cat((ENTITY, ANSWER, CANDIDATES))]
    found = made.score_batch(rows, ENTITY, DIRECTION, ANSWER, CANDIDATES, own=True)
    assert found[1] is not None
    return found[0], found[1], found[2]


# Dropout of whole components.


def test_dropout_keeps_the_score_in_the_mean(levers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"bias": True, "loop_bias": True, "weights": {"E": 0.5}}
    whole = model(GoldE, "E3x2 Q4x3", **settings)
    dropping = model(
        lambda *given: levers.ComponentDropout(*given, share=0.4), "E3x2 Q4x3", **settings
    )
    orders = [
        [torch.tensor(order, dtype=torch.float64) for order in both]
        for both in itertools.product(
            itertools.permutations(range(2)), itertools.permutations(range(3))
        )
    ]
    draws = [draw for both in orders for draw in both]
    monkeypatch.setattr(levers.torch, "rand", lambda count, device: draws.pop(0))
    found = [scores(dropping) for _ in orders]
    assert not draws
    for exact, *drawn in zip(scores(whole), *found, strict=True):
        torch.testing.assert_close(torch.stack(drawn).mean(0), exact)
        assert (torch.stack(drawn) - exact).abs().amin(0).min() > 1e-3
    everyone = dropping.score(ENTITY, DIRECTION)  # ranking takes all components
    torch.testing.assert_close(everyone, whole.score(ENTITY, DIRECTION))


# The relation-prediction term.


@pytest.mark.parametrize("reciprocal", [True, False])
def test_the_relation_term_is_the_cross_entropy_by_hand(
    levers: Any, reciprocal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levers, "RELATION_PAIRS", 9)  # three facts and three relations
    made = model(GoldE, "P3x2 Q4x2", bias=True, loop_bias=True, reciprocal=reciprocal)
    weight = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64)
    rows = made.entity.detach()[torch.cat((ENTITY, ANSWER, CANDIDATES))].requires_grad_()
    found = levers.relation_loss(made, rows, Batch(ENTITY, DIRECTION, ANSWER, weight))
    expected = 0.0
    for b in range(3):
        side = DIRECTION[b] // 3 * 3
        each = [
            made.score_pairs(ENTITY[b : b + 1], (side + r).view(1), ANSWER[b : b + 1]).item()
            for r in range(3)
        ]
        right = each[int(DIRECTION[b] % 3)]
        expected += weight[b].item() / 0.8 * (math.log(sum(map(math.exp, each))) - right)
    assert found.item() == pytest.approx(expected, rel=1e-9)
    found.backward()
    assert rows.grad is not None
    moved = rows.grad.abs().sum(1) > 0
    assert moved.tolist() == [True] * 3 + [False] + [True] * 3 + [False] * 6


def test_the_distance_penalty_is_that_of_the_facts_of_a_batch(levers: Any) -> None:
    weight = torch.tensor([0.1, 0.2, 0.5, 0.4], dtype=torch.float64)
    settings = {"loop_bias": False, "weights": {"P": 0.5}}
    squares = model(GoldE, "P3x2 Q4x3", **settings, norm=2)
    squares.weights = [1.0, 1.0]
    made = model(GoldE, "P3x2 Q4x3", **settings)
    rows = made.entity[torch.cat((ENTITY, ANSWER, CANDIDATES))]
    found = levers.distance_penalty(made, rows, Batch(ENTITY, DIRECTION, ANSWER, weight))
    expected = -(weight * scores(squares)[0]).sum() / 1.2
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["relation_loss", "distance_penalty"])
def test_a_term_is_added_with_its_weight(levers: Any, name: str) -> None:
    losses: dict[str, list[float]] = {"all": [], "plain": [], "term": []}
    term = getattr(levers, name)
    with_term = levers.with_term(term, 0.25)

    def loss(made: Any, rows: Tensor, draw: Any, config: Any) -> Tensor:
        found: Tensor = with_term(made, rows, draw, config)
        losses["all"].append(found.item())
        losses["plain"].append(step_loss(made, rows, draw, config).item())
        losses["term"].append(term(made, rows, draw.batch).item())
        return found

    trained(levers, levers.Lever(loss=loss))
    parts = zip(losses["plain"], losses["term"], strict=True)
    assert losses["all"] == pytest.approx([plain + 0.25 * more for plain, more in parts])
    assert len(losses["all"]) == 12


# Trainings.


def trained(
    levers: Any, lever: Any, config: Config | None = None, device: str = "cpu"
) -> dict[str, Tensor]:
    """The parameters that a training on the ring ends with."""
    with tempfile.TemporaryDirectory() as folder, levers.in_force(lever):
        torch.manual_seed(0)
        config = config or quick(validate_every=0, regulariser="norm", regulariser_weight=0.1)
        run = train(ring(), Path(folder, "run"), config, device=device)
        return {name: p.detach() for name, p in run.load_model("cpu").named_parameters()}


def test_an_average_is_that_of_the_steps_it_saw(
    levers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levers, "AVERAGED_EVERY", 5)
    seen: list[dict[str, Tensor]] = []

    class Watched(levers.Averaged):  # type: ignore[misc]
        def _step(self, step: int, *, check: bool) -> Tensor:
            loss: Tensor = super()._step(step, check=check)
            seen.append({k: p.detach().clone() for k, p in self.model.named_parameters()})
            return loss

    found = trained(levers, levers.Lever(training=lambda *given: Watched(*given, decay=0.9)))
    weights = {2: 0.9**10, 7: 0.9**5, 12: 1.0}  # by step, the last of twelve among them
    for name, value in found.items():
        total = sum(weight * seen[step - 1][name].double() for step, weight in weights.items())
        torch.testing.assert_close(value.double(), total / sum(weights.values()))
    assert (found["entity"] - seen[-1]["entity"]).abs().max() > 1e-3


def test_an_average_sees_rows_that_were_not_drawn_as_they_would_be(levers: Any) -> None:
    """A table in host memory moves those when they are next drawn, and not before."""
    lever = levers.LEVERS["weight-averaging-0.99"]
    settings = {"validate_every": 0, "regulariser": "norm", "regulariser_weight": 0.1}
    device, host = (
        trained(
            levers, lever, quick(**settings, batch_size=3, precision="float64", entity_table=place)
        )
        for place in ("device", "host")
    )
    for name, value in device.items():
        torch.testing.assert_close(host[name], value)


def test_the_second_loss_goes_on_where_the_first_was(levers: Any) -> None:
    losses: list[str] = []

    def loss(made: Any, rows: Tensor, draw: Any, config: Any) -> Tensor:
        losses.append(config.loss)
        return step_loss(made, rows, draw, config)

    class Swapped(Training):
        """The same moments, schedule and batches; on a CPU nothing was captured with the first loss."""

        def _step(self, step: int, *, check: bool) -> Tensor:
            if step == 9:
                self.update.config = self.config.model_copy(update={"loss": "cross-entropy"})
            return super()._step(step, check=check)

    turned = levers.Lever(
        loss=loss, training=lambda *given: levers.ThenCrossEntropy(*given, share=0.25)
    )
    found = trained(levers, turned)
    assert losses == ["self-adversarial"] * 9 + ["cross-entropy"] * 3
    for name, value in trained(levers, levers.Lever(training=Swapped)).items():
        assert torch.equal(found[name], value)


# Distances.


def lorentzian_product(x: Tensor, y: Tensor) -> Tensor:
    return (x[..., 1:] * y[..., 1:]).sum(-1) - x[..., 0] * y[..., 0]


def on_hyperboloid(e: Tensor, beta: Tensor) -> Tensor:
    """Eq. 11."""
    norm, root = e.norm(dim=-1, keepdim=True), beta.sqrt().unsqueeze(-1)
    return torch.cat((root * (norm / root).cosh(), root * (norm / root).sinh() * e / norm), -1)


def by_formula(made: GoldE, head: Tensor, direction: int, answer: Tensor, lever: str) -> float:
    """One fact's score from the points themselves, component by component."""
    row = made.entity[answer].unsqueeze(0)
    moved = made.transport(made.entity[head].unsqueeze(0), torch.tensor([direction]))
    total = 0.0
    for group, weight, x, y in zip(
        made.geometries, made.weights, made._split(moved), made._split(row), strict=True
    ):
        maps = group.maps(torch.tensor([direction]))
        if group.letter == "Q":
            beta = torch.ones_like(maps.beta) if lever == "published-beta" else maps.beta
            inner = lorentzian_product(on_hyperboloid(x, beta), on_hyperboloid(y, beta))
            square = -2 * beta - 2 * inner
            geodesic = maps.beta.sqrt() * torch.acosh(-inner / beta)
            distance = {"lorentzian": square.sqrt(), "lorentzian-squared": square}.get(
                lever, geodesic
            )
        else:
            p = maps.p if group.letter == "P" else torch.ones_like(x)
            cosine = (p * x * y).sum(-1) / ((p * x * x).sum(-1) * (p * y * y).sum(-1)).sqrt()
            extrinsic = (p * (x - y).square()).sum(-1).sqrt()
            distance = cosine.acos() if lever == "ellipsoid-geodesic" else extrinsic
        total -= weight * distance.sum().item()
    return total


@pytest.mark.parametrize(
    "lever", ["ellipsoid-geodesic", "lorentzian", "lorentzian-squared", "published-beta"]
)
def test_distances_are_those_of_their_formulas(
    levers: Any, lever: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levers, "BLOCK_ELEMENTS", 40)  # a few queries at a time
    made = model(levers.LEVERS[lever].model, "E3x2 P4x3 Q4x2", weights={"P": 0.5})
    with torch.no_grad():
        answers, own, shared = scores(made)
        for b in range(4):
            given = made, ENTITY[b], int(DIRECTION[b])
            assert answers[b].item() == pytest.approx(
                by_formula(*given, ANSWER[b], lever), rel=1e-6
            )
            assert own[b].item() == pytest.approx(by_formula(*given, ENTITY[b], lever), rel=1e-6)
            for n, candidate in enumerate(CANDIDATES):
                expected = by_formula(*given, candidate, lever)
                assert shared[b, n].item() == pytest.approx(expected, rel=1e-6)
        torch.testing.assert_close(made.score(ENTITY, DIRECTION, CANDIDATES), shared)
    rows = made.entity.detach()[torch.cat((ENTITY, ANSWER, CANDIDATES))].requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: scores(made, rows), (rows,), fast_mode=True)


@pytest.mark.parametrize(
    "lever", ["ellipsoid-geodesic", "lorentzian", "lorentzian-squared", "published-beta"]
)
def test_gradients_are_finite_where_points_coincide_or_are_opposite_and_at_zero(
    levers: Any, lever: str
) -> None:
    made = model(levers.LEVERS[lever].model, "E3x2 P4x3 Q4x2").float()
    with torch.no_grad():
        heads = made.entity[ENTITY]
        heads[0] = 0.0
        moved = made.transport(heads, DIRECTION)
        zero = torch.zeros_like(moved[:1])
        rows = torch.cat((heads, moved, zero, -moved)).requires_grad_()
    sum(part.sum() for part in scores(made, rows)).backward()
    assert rows.grad is not None
    assert rows.grad.isfinite().all()
    for name, parameter in made.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


def test_a_distance_that_changes_nothing_is_an_error(levers: Any) -> None:
    with pytest.raises(ValueError, match=r"'E3x2' has no Q: nothing is changed"):
        model(levers.LEVERS["lorentzian"].model, "E3x2")


# All of them.


def test_models_that_kernels_do_not_know_never_reach_them(
    levers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where kernels would score all components, or by the usual distance."""
    monkeypatch.setattr("golde.models.golde.supports", lambda finish, *_: type(finish) in KNOWN)

    def refuse(*_: Any) -> None:
        raise AssertionError("scored by kernels")

    monkeypatch.setattr(GoldE, "_fused_scores", refuse)
    with pytest.raises(AssertionError, match="scored by kernels"):
        scores(model(GoldE, "P3x2 Q4x2"))
    changed = [lever.model for lever in levers.LEVERS.values() if lever.model is not GoldE]
    assert len(changed) == 6
    for make in changed:
        made = model(make, "P3x2 Q4x2")
        scores(made)
        if isinstance(made, levers.OtherDistances):
            assert not hasattr(made.scorer(), "count")  # ranks are not counted by kernels either


def test_every_lever_changes_a_training_and_nothing_after_it(
    levers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levers, "AVERAGED_EVERY", 5)
    before = KINDS["golde"], update.step_loss, loop.Training
    config = quick(model={"signature": "P3x3 Q4x4"}, validate_every=0)
    found = {name: trained(levers, lever, config) for name, lever in levers.LEVERS.items()}
    assert (KINDS["golde"], update.step_loss, loop.Training) == before
    rows = {name: parameters["entity"] for name, parameters in found.items()}
    assert torch.equal(rows["as-configured"], trained(levers, levers.Lever(), config)["entity"])
    for one, other in itertools.combinations(rows, 2):
        if {one, other} != {"as-configured", "component-dropout-0.1"}:  # drops none of four
            assert not torch.equal(rows[one], rows[other]), (one, other)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU captures steps")
@pytest.mark.parametrize(
    "lever",
    [
        "relation-prediction-1",
        "distance-penalty-0.1",
        "published-beta",
        "then-cross-entropy-0.3",
        "ellipsoid-geodesic",
        "lorentzian",
    ],
)
def test_a_captured_step_has_the_lever(levers: Any, lever: str) -> None:
    captured, launched = (
        trained(
            levers,
            levers.LEVERS[lever],
            quick(
                model={"bias": True, "loop_bias": True}, steps=20, validate_every=0, compile=mode
            ),
            "cuda",
        )
        for mode in ("auto", "off")
    )
    for name, value in launched.items():
        torch.testing.assert_close(captured[name], value, rtol=1e-2, atol=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU captures steps")
def test_a_replayed_step_drops_other_components(levers: Any) -> None:
    make = levers.LEVERS["component-dropout-0.3"].model
    made = model(make, "E2x9").to("cuda", torch.float32)
    which = torch.arange(4, device="cuda")  # of queries, directions, answers and candidates alike
    replay: Replay[Tensor] = Replay()

    @torch.no_grad()
    def work() -> Tensor:
        rows = made.entity[which].repeat(3, 1)
        found: Tensor = made.score_batch(rows, which, which, which, which, own=False)[2]
        return found.sum()

    found = [replay(work).item() for _ in range(20)]
    assert replay.captured
    assert len(set(found[EAGER:])) > 1


# The study.


@pytest.fixture
def study(load: Any, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Run the script on a configuration of the ring; what its file has then."""
    module, graph = load("other_levers"), ring()
    for split in ("train", "valid", "test"):
        facts = (
            f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n"
            for h, r, t in graph.split(split).tolist()
        )
        (tmp_path / f"{split}.tsv").write_text("".join(facts), "utf-8")
    config = quick().model_copy(update={"graph": str(tmp_path)})
    (tmp_path / "ring.toml").write_text(config.to_toml(), "utf-8")

    def run(*words: Any, **values: Any) -> list[dict[str, Any]]:
        options = {"steps": 12, "negatives": 5, "seeds": 0, "device": "cpu"} | values
        given = [str(w) for key, value in options.items() for w in (f"--{key}", value)]
        out = tmp_path / "new" / "found.json"
        with pytest.MonkeyPatch.context() as patch:
            arguments = [*map(str, words), *given, "--out", str(out)]
            patch.setattr(sys, "argv", ["other_levers.py", str(tmp_path / "ring.toml"), *arguments])
            module.main()
        found: list[dict[str, Any]] = json.loads(out.read_text("utf-8"))["trainings"]
        return found

    return run


def test_it_runs_in_two_processes_and_goes_on_in_one(study: Any) -> None:
    first = study("--levers", "as-configured", "lorentzian", jobs=2)
    assert {one["lever"] for one in first} == {"as-configured", "lorentzian"}
    assert {one["trainings_at_a_time"] for one in first} == {2}
    found = study("--levers", "as-configured", "lorentzian", "then-cross-entropy-0.3")
    assert found[:2] == first
    assert [one["lever"] for one in found[2:]] == ["then-cross-entropy-0.3"]
    for one in found:
        assert (one["configuration"], one["steps"], one["negatives"]) == ("ring", 12, 5)
        assert one["protocol"]["split"] == "valid"
        assert one["protocol"]["triples"] == one["protocol"]["split_triples"] == 4
        assert not one["protocol"]["self_filter"]
        assert 0 < one["validation"]["mrr"] <= 1
        assert one["settings"]["training"]["negatives"] == 5
        assert {"commit", "machine", "versions", "environment"} < set(one)
    alone = study("--levers", "as-configured", "lorentzian", seeds=1)
    assert alone[:3] == found
    again = study("--levers", "as-configured", "lorentzian", "then-cross-entropy-0.3")
    assert again == alone  # nothing was trained again


def test_what_failed_is_replaced_and_what_has_other_settings_stays_beside(
    study: Any, tmp_path: Path
) -> None:
    file = tmp_path / "ring.toml"
    usual = file.read_text("utf-8")
    file.write_text(usual.replace("P3x2 Q4x2", "P3x4"), "utf-8")
    (one,) = study("--levers", "lorentzian")
    assert one["failed"].endswith("has no Q: nothing is changed")
    file.write_text(usual, "utf-8")
    (first,) = study("--levers", "lorentzian")
    assert "failed" not in first
    file.write_text(usual.replace("batch_size = 10", "batch_size = 11"), "utf-8")
    before, since = study("--levers", "lorentzian")
    assert before == first
    assert [one["settings"]["training"]["batch_size"] for one in (before, since)] == [10, 11]
    assert study("--levers", "lorentzian") == [before, since]  # nothing was trained again
    file.write_text(usual, "utf-8")
    assert study("--levers", "lorentzian") == [before, since]


def test_a_process_that_ends_badly_is_written_down(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (one,) = study("--levers", "lorentzian", jobs=2)
    assert one["failed"].startswith("exit code 1")
    assert "commit" in one


def test_a_configuration_without_a_graph_is_an_error(study: Any, tmp_path: Path) -> None:
    (tmp_path / "ring.toml").write_text("[training]\nsteps = 3\n", "utf-8")
    with pytest.raises(SystemExit, match=r"other_levers.py: .*ring.toml: names no graph"):
        study()
    assert not (tmp_path / "new").exists()


# How it is written.


def written(lever: str, seed: int, mrr: float, margin: float = 9.0) -> dict[str, Any]:
    return {
        "configuration": "wn18rr",
        "lever": lever,
        "seed": seed,
        "steps": 3000,
        "negatives": 500,
        "trainings_at_a_time": 4,
        "validation": {"mrr": mrr, "hits@10": 0.5, "mr": 1234.0},
        "settings": {"model": {"margin": margin}, "training": {"seed": seed}},
        "machine": {"gpu": "a GPU"},
        "versions": {"python": "3", "torch": "2", "triton": "1"},
        "commit": "0123456789abcdef",
    }


def rows_of(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("| ")]


def test_levers_are_rendered_beside_the_configuration_the_best_first(tmp_path: Path) -> None:
    runs = [written("as-configured", 0, 0.41), written("as-configured", 1, 0.43)]
    runs += [written("lorentzian", 1, 0.425), written("weight-averaging-0.99", 0, 0.44)]
    runs.append(written("lorentzian", 0, 0.0) | {"failed": "the loss became nan"})
    found = {"trainings": runs}
    (tmp_path / "other_levers.json").write_text(json.dumps(found), "utf-8")
    text = other_levers(found)
    assert section(tmp_path, "other_levers").endswith(text)
    assert rows_of(text)[2:] == [
        "| weight averaging 0.99 | 1 | .4400 | +.0300 | .500 | 1,234 |",
        "| lorentzian | 1 | .4250 | -.0050 | .500 | 1,234 |",
        "| as configured | 2 | .4200 |  | .500 | 1,234 |",
    ]
    assert "`configs/wn18rr.toml` as of these commits, with 3,000 steps and 500 negatives" in text
    assert "mean over seeds 0, 1, those of one line up to .0200 apart; differences" in text
    assert "a GPU, Python 3, torch 2, Triton 1, up to 4 trainings at a time, commit 0123456" in text
    assert "lorentzian on wn18rr with seed 0 failed: the loss became nan" in text
    assert (
        "*weight averaging* ends with a moving average of the parameters; *lorentzian* takes"
        in text
    )
    assert "*published beta*" not in text  # not tried


def test_levers_of_other_settings_have_a_table_of_their_own() -> None:
    before = [written("as-configured", 0, 0.41), written("lorentzian", 0, 0.42)]
    since = [written("as-configured", 1, 0.43, margin=6.0), written("lorentzian", 1, 0.45)]
    first, second = other_levers({"trainings": before + since}).split("### wn18rr")[1:]
    assert rows_of(first)[2:] == [
        "| lorentzian | 2 | .4350 | +.0100 | .500 | 1,234 |",
        "| as configured | 1 | .4100 |  | .500 | 1,234 |",
    ]
    assert rows_of(second)[2:] == ["| as configured | 1 | .4300 |  | .500 | 1,234 |"]
    assert second.startswith(", when it had `model.margin = 6.0`\n")


def test_levers_of_settings_that_stand_in_some_alone_are_told_apart() -> None:
    one, other = written("as-configured", 0, 0.41), written("as-configured", 1, 0.43)
    other["settings"] = other["settings"] | {"evidence": {"hops": 2}}
    first, second = other_levers({"trainings": [one, other]}).split("### wn18rr")[1:]
    assert first.startswith(", when it had `evidence.hops = 0`\n")
    assert second.startswith(", when it had `evidence.hops = 2`\n")


def test_every_lever_is_described(levers: Any) -> None:
    unchanged = {"as-configured"}
    for lever in set(levers.LEVERS) - unchanged:
        assert any(lever.startswith(name) for name in LEVERS), lever
    for name in LEVERS:
        assert any(lever.startswith(name) for lever in levers.LEVERS), name
