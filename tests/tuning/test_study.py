"""A study finds what is planted, loses nothing, and is mistaken for no other."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golde.config import Config
from golde.data import synthetic
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError, RunError
from golde.evaluation import evaluate as evaluation
from golde.training import loop
from golde.training.loop import DivergedError
from golde.tuning import Study, search, winner
from golde.tuning.study import NAME
from golde.tuning.trial import KILLED

MakeStudy = Callable[..., Study]
Trained = Callable[[Callable[[Config], float]], list[Config]]

CLOSE = 1 / 3
"""As a share of an e-fold around the planted rate: draws at random are that close one time in seven."""


def distance(rate: float | None) -> float:
    """From the planted rate, ten times below the default one, in e-folds."""
    assert rate is not None
    return abs(math.log(rate / 1e-3))


def planted(config: Config) -> float:
    """The rate decides; the temperature hardly matters."""
    return (
        0.9 * math.exp(-(distance(config.training.learning_rate) ** 2))
        - 0.01 * (config.training.temperature - 1) ** 2
    )


def points(study: Study) -> list[dict[str, Any]]:
    return [trial.point for trial in study.trials() if trial.counts]


def test_what_is_planted_is_found_and_what_falls_behind_cut_short(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph, tmp_path: Path
) -> None:
    trained(planted)
    found = late = 0
    for seed in range(3):
        one = study(place=tmp_path / f"{seed}.db", seed=seed)
        assert search(one, graph, 18)
        best = one.best()
        assert best is not None
        assert best.mrr == max(t.mrr for t in one.trials() if t.state == "complete" and t.mrr)
        cut = [trial for trial in one.trials() if trial.state == "pruned"]
        assert len(cut) >= 4
        assert all(t.validations < one.validations and (t.mrr or 0) < best.mrr for t in cut)
        found += distance(best.point["training.learning_rate"]) < CLOSE
        late += sum(distance(p["training.learning_rate"]) < CLOSE for p in points(one)[10:])
        assert one.importance()["training.learning_rate"] > 0.6
    assert found >= 2
    assert late >= 2 * 3 * 8 / 7


def test_the_space_of_the_paper_is_searched_at_random_and_to_the_end(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph
) -> None:
    done = trained(planted)
    one = study({"model": {"signature": "P4x2"}}, space="paper")
    search(one, graph, 6)
    assert {trial.state for trial in one.trials()} == {"complete"}
    assert len({config.training.temperature for config in done}) == 6


def test_a_search_that_goes_on_is_the_search_that_was_not_interrupted(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph, tmp_path: Path
) -> None:
    trained(planted)
    for wanted in (3, 3, 12):
        assert search(study(), graph, wanted)
        assert len(points(study())) == wanted
    whole = study(place=tmp_path / "whole.db")
    search(whole, graph, 12)
    assert points(study()) == points(whole)
    assert len({point["training.learning_rate"] for point in points(whole)}) == 12


def test_a_trial_that_was_interrupted_is_the_next_and_changes_none_after_it(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph, tmp_path: Path
) -> None:
    done = trained(planted)
    one = study()
    assert not search(one, graph, 5, should_stop=lambda: len(done) == 3)
    assert len(points(one)) == 2
    with one.alone():
        assert search(study(), graph, 5)
    assert len(points(one)) == 5
    assert done[2] == done[3]
    assert not list(one.path.parent.glob("study.db?*"))  # type: ignore[union-attr]
    whole = study(place=tmp_path / "whole.db")
    search(whole, graph, 5)
    assert points(one) == points(whole)


def test_a_trial_whose_process_is_killed_is_tried_once_more(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph
) -> None:
    def killed(config: Config) -> float:
        raise SystemExit  # nobody tells the study

    done = trained(killed)
    for _ in range(2):
        one = study()
        with pytest.raises(SystemExit), one.alone():
            search(one, graph, 3)
    assert one.trials()[0].state == "lost"
    assert one.trials()[-1].state == "running"
    assert done[0] == done[1]
    trained(planted)
    with one.alone():
        search(one, graph, 3)
    states = [trial.state for trial in one.trials()]
    assert states.count("lost") == states.count("failed") == 1
    assert [trial.reason for trial in one.trials() if trial.state == "failed"] == [KILLED]
    assert len(points(one)) == 3


def test_a_trial_that_diverges_is_one_of_many(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph
) -> None:
    def steep(config: Config) -> float:
        if (config.training.learning_rate or 0) > 0.005:
            raise DivergedError("the loss became nan at step 3")
        return planted(config)

    trained(steep)
    one = study()
    assert search(one, graph, 10)
    failed = [trial for trial in one.trials() if trial.state == "failed"]
    assert failed[0].number == 0  # the default rate is 0.01
    assert {trial.reason for trial in failed} == {"the loss became nan at step 3"}
    best = one.best()
    assert best is not None
    assert best.point["training.learning_rate"] < 0.005
    assert len(points(one)) == 10
    assert one.importance()


def test_a_disk_that_is_full_ends_the_search(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph
) -> None:
    def full(config: Config) -> float:
        raise RunError("cannot be written")

    trained(full)
    one = study()
    with pytest.raises(RunError, match="cannot be written"):
        search(one, graph, 3)
    assert points(one) == []


def test_nothing_is_said_to_matter_after_a_few_trials(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph
) -> None:
    trained(planted)
    one = study()
    assert one.best() is None
    search(one, graph, 3)
    assert one.importance() == {}


def test_training_is_real_and_test_is_never_ranked(
    study: MakeStudy, graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = []
    rank = evaluation.rank_triples

    def watched(score: Any, graph: Any, triples: Any, **options: Any) -> Any:
        ranked.append({tuple(fact) for fact in triples.tolist()})
        return rank(score, graph, triples, **options)

    monkeypatch.setattr(evaluation, "rank_triples", watched)
    monkeypatch.setattr(loop, "rank_triples", watched)
    one = study({"training": {"steps": 12, "validate_every": 3}}, numbers=8)
    with one.alone():
        search(one, graph, 3, device="cpu")
        assert list(one.runs.iterdir()) == []  # type: ignore[union-attr]
    assert one.runs is not None
    assert not one.runs.exists()
    held_out = {tuple(fact) for fact in graph.valid.tolist()}
    assert len(ranked) > 6
    assert all(facts <= held_out for facts in ranked)
    best = one.best()
    assert best is not None
    assert winner(one, graph, best).training.steps == 12


def test_another_search_is_refused(study: MakeStudy, graph: KnowledgeGraph) -> None:
    study({"training": {"steps": 8}})
    study({"training": {"steps": 8}})
    with pytest.raises(
        GoldeError, match=r"study\.db: holds another search: training\.steps is 8 there"
    ):
        study({"training": {"steps": 9}})
    with pytest.raises(
        GoldeError, match=r"training\.seed is searched or chosen.* there and 1 here"
    ):
        study({"training": {"steps": 8, "seed": 1}})
    with pytest.raises(GoldeError, match="on the graph cycles there and tree here"):
        study({"training": {"steps": 8}}, graph=synthetic.tree(depth=3))
    with pytest.raises(GoldeError, match="on another cycles"):
        study({"training": {"steps": 8}}, graph=synthetic.cycles(copies=6))
    with pytest.raises(GoldeError, match="--space default there and paper here"):
        study({"training": {"steps": 8}}, space="paper")
    with pytest.raises(GoldeError, match="--numbers 128 there and 64 here"):
        study({"training": {"steps": 8}}, numbers=64)


@pytest.mark.parametrize("curvature", ["learned", "scale"])
def test_a_search_of_before_goes_on_unless_it_needs_a_setting_that_is_no_more(
    curvature: str, study: MakeStudy, tmp_path: Path
) -> None:
    import optuna

    study({"training": {"steps": 8}})
    stored = optuna.load_study(study_name=NAME, storage=f"sqlite:///{tmp_path / 'study.db'}")
    begun = stored.user_attrs[NAME]
    begun["given"]["model.curvature"] = curvature
    stored.set_user_attr(NAME, begun)
    if curvature == "learned":
        study({"training": {"steps": 8}})
    else:
        with pytest.raises(GoldeError, match=r"model\.curvature is 'scale' there"):
            study({"training": {"steps": 8}})


def test_what_is_no_study_is_refused_and_left_alone(study: MakeStudy, tmp_path: Path) -> None:
    text, other = tmp_path / "notes.db", tmp_path / "other.db"
    text.write_text("no database, but long enough to be one" * 40)
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    before = other.read_bytes()
    with pytest.raises(GoldeError, match=r"notes\.db: is no study: file is not a database"):
        study(place=text)
    with pytest.raises(GoldeError, match=r"other\.db: is a database, but holds no study"):
        study(place=other)
    assert other.read_bytes() == before
    with pytest.raises(GoldeError, match="is a folder"):
        study(place=tmp_path)
    with pytest.raises(GoldeError, match="there is no folder"):
        study(place=tmp_path / "none" / "s.db")
    with pytest.raises(GoldeError, match=r"pg:…@host/db: cannot be used as a study"):
        study(place="nonsense://pg:secret@host/db")


@pytest.mark.parametrize("columns", ["id, title", "study_id, study_name, doctor"])
def test_studies_of_another_program_are_left_alone(
    columns: str, study: MakeStudy, tmp_path: Path
) -> None:
    other = tmp_path / "hospital.db"
    with sqlite3.connect(other) as database:
        database.execute(f"CREATE TABLE studies ({columns})")
    database.close()
    before = other.read_bytes()
    with pytest.raises(GoldeError, match=r"hospital\.db: is a database, but holds no study"):
        study(place=other)
    assert other.read_bytes() == before


def test_a_study_damaged_in_the_middle_is_named_and_left_alone(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph, tmp_path: Path
) -> None:
    trained(planted)
    path, refused = tmp_path / "damaged.db", 0
    search(study(place=path), graph, 2)
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[4096 * page : 4096 * page + 200] = b"\xa5" * 200
        path.write_bytes(damaged)
        try:
            study(place=path)
        except GoldeError as error:
            assert str(path) in str(error)  # noqa: PT017
            assert path.read_bytes() == damaged
            refused += 1
    assert refused > 0.8 * (len(whole) // 4096 - 1)  # a page may be free


def test_names_with_odd_characters_are_names(study: MakeStudy, tmp_path: Path) -> None:
    path = tmp_path / "a {b} %20 ü.db"
    study(place=path)
    assert path.is_file()


def test_one_command_at_a_time_searches_in_a_file(study: MakeStudy) -> None:
    with (
        study().alone(),
        pytest.raises(GoldeError, match="another process is searching there"),
        study().alone(),
    ):
        pass


def test_a_url_names_a_database(
    study: MakeStudy, trained: Trained, graph: KnowledgeGraph, tmp_path: Path
) -> None:
    trained(planted)
    place = f"sqlite:///{tmp_path / 'shared.db'}"
    for wanted in (2, 4):
        one = study(place=place)
        with one.alone():
            search(one, graph, wanted)
    assert len(points(study(place=place))) == 4
