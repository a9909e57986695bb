"""Means, spreads, tables and pages: all of what is in the result files, and nothing else."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from golde.data.catalogue import entries
from golde.errors import ConfigError, GoldeError, RunError
from golde.report import benchmarks
from golde.report.earlier import earlier_section
from golde.report.notes import sizes, small, space, unlike
from golde.report.pages import CLOSE, OPEN, rendered, write_pages
from golde.report.paper import GRAPHS, PaperTables, paper
from golde.report.plots import write_plots
from golde.report.results import FIGURES, read_records, summaries, unfinished, write_record
from golde.report.scaling_plot import write_scaling_plot
from golde.report.seeds import apart, gained
from golde.report.step_plots import write_step_plots
from golde.report.tables import (
    NOT_RUN,
    Table,
    held_out,
    ranked_again,
    reproduced,
    reproduced_section,
    shared,
    trained,
)
from golde.report.variations import joined_share, study_names, study_tables, variation_sections

ROOT = Path(__file__).parents[2]


def digest(graph: str) -> str:
    """Of the set of that name, where it is known."""
    entry = entries().get(graph)
    return entry.digests["graph"] if entry is not None and entry.digests else "0"


def record(graph: str, config: str, seed: int, mrr: float, **changes: Any) -> dict[str, Any]:
    """A result file as ``reproduce`` writes it, in short."""
    both = {"mrr": mrr, "hits@1": mrr - 0.05, "hits@3": mrr, "hits@10": mrr + 0.1, "mr": 1000 * mrr}
    relations = {"_" + name: {"mrr": mrr} for name in paper()["table4"]}
    return {
        "graph": graph,
        "digest": digest(graph),
        "config": config,
        "study": None,
        "seed": seed,
        "split": "test",
        "settings": {"model": {"signature": "P32"}},
        "parameters": {"all": 1600, "entity": 32},
        "training": {"seconds": 100.0 + seed, "steps": 500, "trainings_at_a_time": 1},
        "figures": {
            "standard": {"metrics": {"both": both}},
            "self_filter": {"metrics": {"both": {**both, "mrr": mrr + 0.005}}},
        },
        "relations": relations,
        "evaluations": [],
        "replaced": [],
        "machine": {"cpu": "a CPU", "gpu": "a GPU"},
        "versions": {"python": "3", "torch": "2", "triton": "1"},
        "commit": "0123456789abcdef",
        **changes,
    }


def keep(results: Path, one: dict[str, Any]) -> None:
    kind = "studies" if one["study"] else "runs"
    folder = results / kind / (one["study"] or one["graph"]) / one["config"]
    write_record(folder / f"seed-{one['seed']}.json", one)


MRR = (0.5241, 0.5263, 0.5252)

THEIRS = (
    "As in Table 2 the published figures of GoldE are without the query's own entity among the candidates "
    "(self-filter)."
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    for seed, mrr in enumerate(MRR):
        keep(folder, record("wn18rr", "wn18rr", seed, mrr))
    keep(folder, record("wn18rr", "wn18rr-k32", 10, 0.48, commit="fedcba9876543210+changes"))
    for name, study in (
        ("wn18rr-E", "table3"),
        ("wn18rr-P-6", "figure3"),
        ("wn18rr-32", "figure4"),
    ):
        keep(folder, record("wn18rr", name, 0, 0.4321, study=study, split="valid"))
    biased = {"study": "table3", "split": "valid", "parameters": {"all": 1600, "entity": 34}}
    keep(folder, record("wn18rr", "wn18rr-P", 0, 0.4, **biased))
    half = record("fb15k-237", "fb15k-237", 0, 0.9)
    del half["figures"]["self_filter"]
    keep(folder, half)
    return folder


def test_json_has_means_over_seeds_and_their_spread(results: Path) -> None:
    found = summaries(results)
    assert set(found) == {"wn18rr"}  # what is not ranked in full does not count
    assert set(found["wn18rr"]) == {"wn18rr", "wn18rr-k32"}
    one = found["wn18rr"]["wn18rr"]
    keys = ["standard", "self_filter", "seeds", "seconds", "commit", "spread"]
    assert list(one) == keys
    for protocol in ("standard", "self_filter"):
        assert list(one[protocol]) == list(FIGURES)
    assert one["standard"]["mrr"] == fmean(MRR)
    assert one["self_filter"]["mrr"] == pytest.approx(fmean(MRR) + 0.005)
    assert one["spread"]["mrr"] == stdev(MRR)
    assert (one["seeds"], one["seconds"], one["commit"]) == (3, 101.0, "0123456789abcdef")
    assert found["wn18rr"]["wn18rr-k32"]["spread"] is None
    json.dumps(found)


def test_the_table_shows_every_configuration(results: Path) -> None:
    (table,) = reproduced(results)
    assert table.title == "wn18rr"
    full, small = table.rows
    assert full == [
        *("wn18rr", "3", ".5252±.0011", ".625", "525", ".530", "", "101 s", "0123456"),
    ]
    assert small[2] == ".4800"
    assert small[-1] == "fedcba9+"


def test_changes_are_set_beside_the_configuration_best_first(results: Path) -> None:
    assert variation_sections(results) == []  # other studies change more than one setting
    for name, mrr in (("as-configured", 0.51), ("no-penalty", 0.49), ("margin-6", 0.512)):
        for seed in (0, 1):
            ranked = record("wn18rr", f"wn18rr-{name}", seed, mrr + 0.001 * seed)
            keep(results, ranked | {"study": "levers-wn18rr", "split": "valid"})
    (section,) = variation_sections(results)
    assert section.startswith("## What moves accuracy")
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert rows == [
        "| margin 6 | 2 | .5125 | +.0020 (+.0020 +.0020) | .613 | 512 |",
        "| as configured | 2 | .5105 |  | .611 | 510 |",
        "| no penalty | 2 | .4905 | -.0200 (-.0200 -.0200) | .591 | 490 |",
    ]


def test_changes_where_evidence_counts_show_the_embedding_alone_too(results: Path) -> None:
    for name, mrr, gain in (("as-configured", 0.51, 0.02), ("no-penalty", 0.50, 0.0)):
        one = record("wn18rr", f"wn18rr-{name}", 0, mrr, study="full-length", split="valid")
        if gain:  # where evidence changes nothing, no figures stand beside those of both
            without = record("wn18rr", "", 0, mrr - gain)["figures"]["standard"]
            one["figures"]["embedding"] = without
            one["training"] |= {"evidence": {"hops": 1, "scale": 1.0, "joined": 0.0}}
        keep(results, one)
    (section,) = variation_sections(results)
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert rows[0].endswith(" MR | alone |")
    assert rows[2:] == [
        "| as configured | 1 | .5100 |  | .610 | 510 | .4900 |",
        "| no penalty | 1 | .5000 | -.0100 | .600 | 500 | .5000 |",
    ]


def test_it_is_said_how_often_test_was_ranked_before(results: Path) -> None:
    assert "reached before" not in reproduced_section(results)
    keep(results, record("wn18rr", "wn18rr", 0, MRR[0], replaced=[before(0.4), before(0.5)]))
    assert "anew (wn18rr 2 times): [what they reached before](" in reproduced_section(results)


def ranking(protocol: str) -> dict[str, Any]:
    """A line of the list of rankings."""
    return {"when": "2026-01-01", "split": "test", "protocol": protocol, "commit": "0"}


def test_it_is_said_where_test_was_ranked_more_than_once(results: Path) -> None:
    half = before(0.9, evaluations=[ranking("standard")])  # of one that was never ranked to its end
    del half["figures"]["self_filter"]
    twice = [ranking("standard"), ranking("standard"), ranking("self_filter")]
    keep(results, record("wn18rr", "wn18rr", 0, MRR[0], replaced=[half]))
    once = (
        "once more without it. Rankings of 1 more were begun and not ended; result files list them."
    )
    assert once in reproduced_section(results)
    assert "reached before" not in reproduced_section(results)
    assert ranked_again(read_records(results, "runs")) == []
    keep(results, record("wn18rr", "wn18rr", 0, MRR[0], replaced=[half], evaluations=twice))
    assert ranked_again(read_records(results, "runs")) == ["wn18rr, seed 0 (standard 2 times)"]
    section = reproduced_section(results)
    assert "once more without it, but for wn18rr, seed 0 (standard 2 times). Rankings" in section
    keep(results, record("wn18rr", "wn18rr", 0, MRR[0], evaluations=twice))
    section = reproduced_section(results)
    assert "once more without it, but for wn18rr, seed 0 (standard 2 times).\n" in section


def test_what_was_not_ranked_to_the_end_is_found(results: Path) -> None:
    half = results / "runs/fb15k-237/fb15k-237/seed-0.json"
    assert (unfinished(results), unfinished(results, "own")) == ([half], [])
    one = record("mine", "mine-long", 0, 0.5, study="own", split="valid")
    del one["figures"]["self_filter"]
    keep(results, one)
    assert unfinished(results) == [half]
    assert unfinished(results, "own") == [results / "studies/own/mine-long/seed-0.json"]


def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = results / "runs" / "wn18rr"
    listed = Path.iterdir

    def iterdir(path: Path) -> Any:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(RunError, match=r"runs/wn18rr: cannot be read: Permission denied"):
        read_records(results, "runs")


def before(mrr: float, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """A result that another has taken the place of."""
    old = record("wn18rr", "wn18rr", seed, mrr, **changes)
    del old["replaced"]
    return old


def test_what_a_configuration_reached_before_is_shown(results: Path) -> None:
    assert earlier_section(results) == ""
    half = before(0.9)
    del half["figures"]["self_filter"]  # never ranked to its end
    crowded = {"seconds": 50.0, "steps": 500, "trainings_at_a_time": 3}
    second = {"commit": "second0", "evaluations": [{"when": "2026-02-02"}]}
    third = {"commit": "third00", "evaluations": [{"when": "2026-03-03"}]}
    then = [before(0.5, **second), before(0.7, **third), half]
    keep(results, record("wn18rr", "wn18rr", 0, MRR[0], replaced=then))
    first = {"commit": "first00", "evaluations": [{"when": "2026-01-01"}]}
    other = {"settings": {"model": {"signature": "P16"}}, "evaluations": [{"when": "2026-04-04"}]}
    then = [
        before(0.4, **first, seed=1),
        before(0.52, **second, seed=1, training=crowded),
        before(0.53, **second, seed=1),  # once more as it was
        before(0.6, **third | other, seed=1),
    ]
    keep(results, record("wn18rr", "wn18rr", 1, MRR[1], replaced=then))
    rows = [line for line in earlier_section(results).splitlines() if line.startswith("| wn18rr")]
    assert rows == [
        "| wn18rr | wn18rr | 1 | .4000 | .500 | 400 | .405 |  | 101 s | first00 |",
        "| wn18rr | wn18rr | 2 | .5100±.0141 | .610 | 510 | .515 |  | 75 s | second0 |",
        "| wn18rr | wn18rr | 1 | .5300 | .630 | 530 | .535 |  | 101 s | second0 |",
        "| wn18rr | wn18rr | 1 | .7000 | .800 | 700 | .705 |  | 100 s | third00 |",
        "| wn18rr | wn18rr | 1 | .6000 | .700 | 600 | .605 |  | 101 s | third00 |",
    ]
    assert earlier_section(results).endswith(
        " a GPU, Python 3, torch 2, Triton 1, up to 3 trainings of wn18rr at a time by one command, other "
        "commands not counted."
    )


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("a word", "is no object"),
        ({"graph": "wn18rr"}, "'digest' is missing or no str"),
        (before(0.4, seed=3), "'seed' is 3, and 0 in what took its place"),
        (before(0.4) | {"split": "valid"}, "'split' is 'valid', and files of runs/ are ranked on"),
        (before(0.4) | {"evaluations": [{}]}, "'evaluations' has one that does not say when"),
        (before(0.4) | {"evaluations": [3]}, "'evaluations' has one that does not say when"),
        (before(float("nan")), r"'figures\.standard\.metrics\.both\.mrr' is nan"),
    ],
)
def test_a_damaged_result_of_before_is_named(results: Path, old: Any, message: str) -> None:
    keep(results, record("wn18rr", "wn18rr", 0, MRR[0], replaced=[before(0.4), old]))
    with pytest.raises(RunError, match=rf"wn18rr/seed-0\.json: 'replaced'\[1\]: {message}"):
        earlier_section(results)


def test_it_is_said_how_far_seeds_of_a_row_are_apart() -> None:
    assert apart([[0.5], [0.4]]) == ""
    assert (
        apart([[0.5, 0.4971], [0.4, 0.4004, 0.4001], [0.9]])
        == ", those of one line up to .0029 apart"
    )


def test_it_is_said_where_the_embedding_alone_is_behind_the_paper(results: Path) -> None:
    def note(graph: str) -> str:
        tables = PaperTables(results, ROOT / "configs").main()
        return next(one.note for one in tables if one.title.startswith(f"Table 2, {GRAPHS[graph]}"))

    assert note("yago3-10").endswith("Ours was not run.")
    assert "does not reach" not in note("wn18rr")
    tables = PaperTables(results, ROOT / "configs")
    assert tables.behind() == ""
    assert tables.relations().note == (
        f"Ours under the standard protocol, means over 3 seeds, on test. {THEIRS}"
    )
    for seed, mrr in enumerate(MRR):
        one = record("wn18rr", "wn18rr", seed, mrr)
        alone = record("wn18rr", "wn18rr", seed, mrr - 0.02)["figures"]["standard"]
        numbers = {"hops": 2, "scale": 1.0, "joined": 0.0}
        training = one["training"] | {"evidence": numbers}
        figures = one["figures"] | {"embedding": alone}
        keep(results, one | {"figures": figures, "training": training})
    assert "does not reach the published MRR (.505 against .525): what is above" in note("wn18rr")
    tables = PaperTables(results, ROOT / "configs")
    assert tables.behind() == (
        "**Behind the paper without evidence**: the embedding alone is worse than the paper's GoldE, of "
        "which some figures are self-filtered, in these of MRR, H@10 and MR: wn18rr (MRR .505 against .525, "
        "H@10 .605 against .615)."
    )
    assert tables.relations().note.endswith(
        "on test. In ours evidence of up to 2 training facts in a row counts beside the embedding; of that "
        f"alone no figures by relation were kept. {THEIRS}"
    )
    assert tables.relations().head[-1] == "ours"
    for seed in range(3):
        one = json.loads((results / f"runs/wn18rr/wn18rr/seed-{seed}.json").read_text())
        relations = {name: {"mrr": 0.1 * seed} for name in one["relations"]}
        one["figures"]["embedding"]["relations"] = relations
        keep(results, one)
    table = PaperTables(results, ROOT / "configs").relations()
    assert table.head[-2:] == ["ours", "alone"]
    assert table.rows[0][-2:] == [".525", ".100"]
    assert table.note.endswith(f" beside the embedding; *alone* is without it. {THEIRS}")


def test_where_evidence_counts_for_some_seeds_the_embedding_is_a_mean_of_all(results: Path) -> None:
    for seed, (mrr, alone) in enumerate([(0.52, None), (0.53, 0.50), (0.53, 0.50)]):
        one = record("wn18rr", "wn18rr", seed, mrr)
        if alone is not None:  # the first gains nothing by evidence, and has no figures without it
            without = record("wn18rr", "wn18rr", seed, alone)
            one["figures"]["embedding"] = without["figures"]["standard"] | {
                "relations": without["relations"]
            }
            one["training"] |= {"evidence": {"hops": 2, "scale": 1.0, "joined": 0.0}}
        keep(results, one)
    assert summaries(results)["wn18rr"]["wn18rr"]["embedding"]["mrr"] == pytest.approx(1.52 / 3)
    (reached,) = reproduced(results)
    assert reached.rows[0][reached.head.index("alone")] == ".507"
    tables = PaperTables(results, ROOT / "configs")
    main = tables.main()[0]
    assert main.rows[-1][0] == "ours: wn18rr, the embedding alone, standard"
    assert "does not reach the published MRR (.507 against .525)" in main.note
    by_relation = tables.relations()
    assert by_relation.head[-1] == "alone"
    assert by_relation.rows[0][-1] == ".507"


def test_a_change_by_a_setting_that_is_no_more_is_marked(results: Path) -> None:
    for name, settings in (("as-configured", {}), ("published-beta", {"curvature": "scale"})):
        one = record("wn18rr", f"wn18rr-{name}", 0, 0.5, study="levers-wn18rr", split="valid")
        keep(results, one | {"settings": {"model": {"signature": "Q9"} | settings}})
    (section,) = variation_sections(results)
    assert "| published beta † | 1 |" in section
    assert "| as configured | 1 |" in section
    assert section.endswith(" †: by a setting that was removed since, as of commit 0123456.")


def test_a_change_by_settings_that_cannot_be_is_refused_by_its_file(results: Path) -> None:
    one = record("wn18rr", "wn18rr-as-configured", 0, 0.5, study="levers-wn18rr", split="valid")
    keep(results, one | {"settings": {"model": {"signature": "Q9", "norm": 3}}})
    message = r"levers-wn18rr/wn18rr-as-configured/seed-0\.json: model\.norm = 3 is not valid"
    with pytest.raises(ConfigError, match=message):
        variation_sections(results)


def test_evidence_is_set_beside_the_same_embeddings_alone(results: Path) -> None:
    for name, alone, mrr in (("1-hop", 0.50, 0.51), ("2-hops", 0.502, 0.52)):
        for seed in (0, 1):
            one = record("wn18rr", f"wn18rr-{name}", seed, mrr)
            without = record("wn18rr", f"wn18rr-{name}", seed, alone)["figures"]["standard"]
            figures = one["figures"] | {"embedding": without}
            training = one["training"] | {"evidence": {"hops": 1, "scale": 1.0, "joined": 0.0}}
            found = {"figures": figures, "training": training}
            keep(results, one | {"study": "evidence", "split": "valid"} | found)
    useless = record("wn18rr", "wn18rr-3-hops", 0, 0.501)  # where evidence changes nothing
    keep(results, useless | {"study": "evidence", "split": "valid"})
    (section,) = variation_sections(results)
    rows = [line.split(" | ")[:4] for line in section.splitlines() if line.startswith("| ")][2:]
    assert rows == [
        ["| none", "2", ".5010", ""],
        ["| 1 hop", "2", ".5100", "+.0100 (+.0100 +.0100)"],
        ["| 2 hops", "2", ".5200", "+.0180 (+.0180 +.0180)"],
        ["| 3 hops", "1", ".5010", "+.0000"],
    ]


def test_a_study_of_evidence_alone_is_set_beside_its_embeddings(results: Path) -> None:
    for name, mrr in (("1-hop", 0.51), ("2-hops", 0.52)):
        one = record("mine", f"mine-{name}", 0, mrr, study="own", split="valid")
        figures = one["figures"] | {"embedding": record("mine", "", 0, 0.5)["figures"]["standard"]}
        training = one["training"] | {"evidence": {"hops": 1, "scale": 1.0, "joined": 0.0}}
        settings = one["settings"] | {"evidence": {"hops": 1}}
        keep(results, one | {"figures": figures, "training": training, "settings": settings})
    useless = record("mine", "mine-3-hops", 0, 0.5, study="own", split="valid")
    keep(results, useless | {"settings": settings})  # where evidence changes nothing
    (table,) = study_tables(results, "own")
    assert [row[:4] for row in table.rows] == [
        ["none", "1", ".5000", ""],
        ["mine-1-hop", "1", ".5100", "+.0100"],
        ["mine-2-hops", "1", ".5200", "+.0200"],
        ["mine-3-hops", "1", ".5000", "+.0000"],
    ]
    assert "500 steps, one seed. a GPU" in table.note


def test_it_is_said_how_a_study_is_unlike_the_configuration_of_its_space(results: Path) -> None:
    now = {"model": {"signature": "P32", "margin": 7.0}, "training": {"steps": 500, "warmup": 0.1}}
    keep(results, record("mine", "mine", 0, 0.5, settings=now))
    small = {"model": {"signature": "P4", "margin": 1.0}}
    keep(results, record("mine", "mine-k32", 0, 0.4, settings=small))

    def note(model: dict[str, Any], training: dict[str, Any]) -> str:
        for name in ("as-configured", "margin-3"):
            margin = {"margin": 3.0} if name == "margin-3" else {}
            settings = {"model": model | margin, "training": training}
            one = record("mine", f"mine-{name}", 0, 0.5, study="own", split="valid")
            keep(results, one | {"settings": settings})
        (table,) = study_tables(results, "own")
        return table.note

    def without_difference(model: dict[str, Any], training: dict[str, Any]) -> bool:
        return note(model, training).endswith("commit 0123456.")

    alike = {"steps": 20, "warmup": 0.1, "validate_every": 10}
    assert without_difference(now["model"], alike)
    assert note(now["model"] | {"margin": 9.0}, {"steps": 20, "warmup": 0.2}).endswith(
        "commit 0123456. Unlike `configs/mine.toml` as reproduced: `model.margin = 9.0` (there 7.0), "
        "`training.warmup = 0.2` (there 0.1)."
    )
    assert without_difference(small["model"], {})
    other = {"settings": {"model": now["model"] | {"margin": 1.0, "bias": True}}}
    keep(results, record("mine", "a-first-of-this-space", 0, 0.5, **other))
    assert without_difference(now["model"], alike)  # than the nearest
    assert without_difference({"signature": "Q8"}, {})  # no configuration has this space
    # as files of before have settings that are no more, and the other way round what they lack
    assert without_difference(now["model"] | {"curvature": "learned"}, alike)
    assert without_difference(now["model"], alike | {"label_smoothing": 0.0})
    assert note(now["model"], {}).endswith(
        "commit 0123456. Unlike `configs/mine.toml` as reproduced: `training.warmup = 0.05` (there 0.1)."
    )


def test_a_setting_in_which_trainings_of_a_study_differ_is_not_told_of_all_of_them() -> None:
    def of(margin: float) -> dict[str, Any]:
        model = {"signature": "P32", "margin": margin, "bias": True}
        return record("mine", "mine", 0, 0.5, settings={"model": model})

    configured = [[record("mine", "mine", 0, 0.5)]]
    alike = " Unlike `configs/mine.toml` as reproduced: `model.bias = true` (there false)"
    assert unlike([of(1.0), of(2.0)], configured) == f"{alike}."
    assert unlike([of(1.0)], configured).endswith("`model.margin = 1.0` (there null).")
    assert unlike([], configured) == unlike([of(1.0)], []) == ""


def test_a_configuration_without_its_studies_has_its_place_beside_the_paper(results: Path) -> None:
    keep(results, record("fb15k-237", "fb15k-237", 0, 0.4))
    tables = {table.title: table for table in PaperTables(results, ROOT / "configs").tables()}
    figure3 = tables["Figure 3, FB15k-237: MRR by dimension"]
    assert {row[2] for row in figure3.rows} == {NOT_RUN}
    assert figure3.note == ""


def test_seeds_of_other_machines_are_not_compared_one_by_one(results: Path) -> None:
    for seed in (0, 1):
        changes = {"study": "own", "split": "valid"}
        keep(results, record("mine", "mine-as-configured", seed, 0.4 + 0.01 * seed, **changes))
        machine = {"cpu": "another CPU"}
        keep(results, record("mine", "mine-long", seed, 0.5, machine=machine, **changes))
    (table,) = study_tables(results, "own")
    assert [row[3] for row in table.rows] == ["+.0950 ‡", ""]
    assert "in brackets" not in table.note
    assert (
        "mine-as-configured on a GPU, Python 3, torch 2, Triton 1, commit 0123456; "
        "mine-long on another CPU, Python 3, torch 2, commit 0123456." in table.note
    )
    assert table.note.endswith(
        " ‡: difference of the means, as not all seeds have their like on the same machine and versions."
    )


def test_seeds_are_compared_where_they_were_trained_on_one_machine(results: Path) -> None:
    here, there = {"cpu": "one CPU"}, {"cpu": "another CPU"}

    def differences(trainings: dict[str, list[tuple[int, dict[str, str], float]]]) -> list[str]:
        for name, seeds in trainings.items():
            for seed, machine, mrr in seeds:
                one = record("mine", f"mine-{name}", seed, mrr, machine=machine, study="own")
                keep(results, one | {"split": "valid"})
        (table,) = study_tables(results, "own")
        return [row[3] for row in table.rows if row[3]]

    base = [(0, here, 0.4), (1, there, 0.42)]
    swapped = [(0, there, 0.41), (1, here, 0.43)]
    assert differences({"as-configured": base, "long": swapped}) == ["+.0100 ‡"]
    further = [(0, here, 0.41), (1, here, 0.43), (2, here, 0.2)]  # one of three has its like
    assert differences({"as-configured": base, "long": further}) == ["-.0633 ‡"]


def test_fewer_seeds_are_compared_with_the_same_ones(results: Path) -> None:
    changes = {"study": "own", "split": "valid"}
    for seed, mrr in enumerate((0.4, 0.6)):
        keep(results, record("mine", "mine-as-configured", seed, mrr, **changes))
    keep(results, record("mine", "mine-long", 0, 0.41, **changes))
    (table,) = study_tables(results, "own")
    assert [row[3] for row in table.rows] == ["", "+.0100"]


def test_the_space_of_ours_is_named_beside_that_of_the_paper() -> None:
    def of(*signatures: str) -> list[dict[str, Any]]:
        return [
            record("mine", "mine", 0, 0.5, settings={"model": {"signature": one}})
            for one in signatures
        ]

    assert space([]) == ""
    assert space(of("Q9x4 P8x4")) == " Ours is elliptic × hyperbolic (`Q9x4 P8x4`)."
    assert space(of("E4", "Q8 E4")) == (
        " Ours is Euclidean or Euclidean × hyperbolic; the published GoldE is elliptic × hyperbolic."
    )


def test_settings_that_were_chosen_for_no_space_are_not_said_to_be() -> None:
    records = [record("mine", "mine", 0, 0.5)]
    assert sizes(records, []).endswith(" settings are those of the configuration of that size.")
    assert sizes(records, records).endswith(" for its space, `P32`, and tuned for no other.")


def test_it_is_said_how_much_of_evidence_are_joined_pairs(results: Path) -> None:
    for name, gain in {"not-joined": 0.01, "as-configured": 0.04}.items():
        assert joined_share(results) == []
        for seed, alone in enumerate((0.30, 0.31)):
            one = record("fb15k-237", f"fb15k-237-{name}", seed, alone + gain, study="full-length")
            without = record("fb15k-237", "", seed, alone)["figures"]["standard"]
            one["training"] |= {"evidence": {"hops": 2, "scale": 1.0, "joined": 0.0}}
            keep(
                results,
                one | {"figures": one["figures"] | {"embedding": without}, "split": "valid"},
            )
    assert joined_share(results) == [
        "In a study evidence added +.0400 to the MRR on the validation facts of fb15k-237, and +.0100 where "
        "it did not count whether a fact joins the two entities already "
        "([at full length](results.md#what-moves-accuracy-at-full-length))."
    ]


def test_a_gain_is_that_of_the_same_seeds() -> None:
    assert gained({0: 0.5}, {1: 0.4}) == ""
    assert gained({0: 0.5, 2: 0.1}, {0: 0.48, 1: 0.9}) == "+0.0200"
    assert gained({0: 0.5, 1: 0.4}, {1: 0.41, 0: 0.48}) == "+0.0050 (+0.0200 -0.0100)"
    assert gained({0: 0.5}, {0: 0.50001}) == "+0.0000"


def test_the_variants_of_a_study_of_ones_own_are_shown(results: Path) -> None:
    for name, mrr in (("short", 0.4), ("long", 0.5)):
        keep(results, record("mine", f"mine-{name}", 0, mrr, study="own", split="test"))
        keep(results, record("mine", f"mine-{name}", 1, mrr, study="own", split="test"))
    assert study_names(results) == ["figure3", "figure4", "own", "table3"]
    (table,) = study_tables(results, "own")
    assert (table.title, [row[:4] for row in table.rows]) == (
        "mine",
        [["mine-long", "2", ".5000", ""], ["mine-short", "2", ".4000", ""]],
    )
    assert table.note.startswith(
        "Test, standard protocol, 500 steps, mean over seeds, those of one"
    )
    keep(results, record("mine", "mine-as-configured", 0, 0.45, study="own", split="test"))
    (table,) = study_tables(results, "own")
    assert [row[3] for row in table.rows] == ["+.0500 ‡", "", "-.0500 ‡"]  # seed 1 has no like
    assert "in brackets" not in table.note
    keep(results, record("mine", "mine-as-configured", 1, 0.44, study="own", split="test"))
    (table,) = study_tables(results, "own")
    assert table.rows[0][3] == "+.0550 (+.0500 +.0600)"
    assert (
        "apart; differences are at the same seeds, those of each in brackets. a GPU" in table.note
    )
    half = record("mine", "mine-half", 0, 0.5, study="half", split="valid")
    del half["figures"]["self_filter"]
    keep(results, half)
    with pytest.raises(GoldeError, match="--study half: nothing of it is ranked to the end"):
        study_tables(results, "half")


def test_it_is_said_where_figures_know_how_facts_were_held_out() -> None:
    def weighed(graph: str, **numbers: float) -> dict[str, Any]:
        one = record(graph, graph, 0, 0.5)
        evidence = {"scale": 1.0, "joined": 0.0, **numbers}
        return one | {"training": one["training"] | {"evidence": evidence}}

    assert held_out([record("wn18rr", "wn18rr", 0, 0.5), weighed("world")]) == []
    (joined,) = held_out([weighed("fb15k-237", joined=-4.0), weighed("wn18rr")])
    assert joined.startswith("On fb15k-237 much of what evidence adds")
    (joined,) = held_out([weighed("fb15k-237", joined=-4.0, scale=0.0)])
    assert joined.startswith("On fb15k-237 nearly all of what evidence adds")
    (raised,) = held_out([weighed("umls", unmentioned=0.0), weighed("wn18rr", unmentioned=0.5)])
    assert raised.endswith(" chosen by mean rank on validation, in wn18rr.")
    (raised,) = held_out([weighed("umls", unmentioned=found) for found in (0.0, 0.5, 0.0)])
    assert raised.endswith(" on validation, in umls (1 of 3 trainings).")
    assert len(held_out([weighed("fb15k-237", joined=-4.0, unmentioned=0.5)])) == 2


def test_it_is_said_how_many_weights_evidence_has_learned() -> None:
    one = record("wn18rr", "wn18rr-k32", 0, 0.5)
    one["figures"]["embedding"] = one["figures"]["standard"]
    one["training"]["evidence"] = {"hops": 2, "scale": 1.0, "joined": 0.0}
    assert "weights" not in small([one], 0.4)
    one["training"]["evidence"]["bodies"] = 250
    one["parameters"]["all"] = 1_600_000
    assert " Evidence learned 250 weights beside the 1.60 M of the embedding." in small([one], 0.4)


def test_it_is_said_where_a_size_is_not_quite_that_of_the_paper(results: Path) -> None:
    tables = PaperTables(results, ROOT / "configs")
    assert "Ours has" not in tables.sizes().note
    settings = {"model": {"signature": "E10x36 Q13x36"}}
    one = record("wn18rr", "wn18rr-800", 0, 0.5, settings=settings, study="figure4")
    keep(results, one | {"split": "valid"})
    tables = PaperTables(results, ROOT / "configs")
    assert " Ours has 792 at 800." in tables.sizes().note


def test_it_is_said_for_how_long_and_with_how_many_negatives_was_trained() -> None:
    def training(steps: int, negatives: int) -> dict[str, Any]:
        one = record("mine", "mine", 0, 0.5)
        settings = one["settings"] | {"training": {"steps": 500, "negatives": negatives}}
        return one | {"settings": settings, "training": one["training"] | {"steps": steps}}

    assert trained([record("mine", "mine", 0, 0.5)]) == "500 steps"
    alike = [training(500, 1000), training(500, 2000), training(500, 1000), training(500, 30)]
    assert trained(alike) == "500 steps with 1,000 negatives (some with 30 or 2,000)"
    assert trained([training(500, 20), training(500, 30)]) == (
        "500 steps with 30 negatives (some with 20)"
    )
    assert trained([training(500, 0), training(500, 0), training(500, 30)]) == (
        "500 steps with all entities as negatives (some with 30)"
    )
    assert trained([training(400, 20), training(500, 20)]) == (
        "500 steps, or fewer where validation no longer improved, with 20 negatives"
    )


def test_damaged_results_are_named(results: Path) -> None:
    path = results / "runs" / "wn18rr" / "wn18rr" / "seed-0.json"
    path.write_text("{}")
    with pytest.raises(RunError, match=r"seed-0\.json: is no result file: .*; restore it"):
        read_records(results, "runs")
    one = record("wn18rr", "wn18rr", 0, 0.5)
    keep(results, one | {"settings": one["settings"] | {"training": 3}})
    with pytest.raises(RunError, match=r"'settings\.training' is missing or no dict"):
        read_records(results, "runs")
    evidence = {"evidence": {"hops": 2, "scale": 1.0, "joined": 0.0}}
    for relations, message in ((3, "no dict"), ({"a": {}}, "no number")):
        alone = one["figures"]["standard"] | {"relations": relations}
        figures = one["figures"] | {"embedding": alone}
        keep(results, one | {"figures": figures, "training": one["training"] | evidence})
        with pytest.raises(RunError, match=rf"'figures\.embedding\.relations.*{message}"):
            read_records(results, "runs")
    path.write_text('{"format": 9}')
    with pytest.raises(RunError, match=r"seed-0\.json: written in result format 9"):
        read_records(results, "runs")
    path.write_text('{"format": 1, "graph": "wn18rr", "digest": "0"}')
    with pytest.raises(RunError, match=r"seed-0\.json: 'config' is missing"):
        read_records(results, "runs")
    whole = record("wn18rr", "wn18rr", 0, 0.5)
    del whole["study"]
    write_record(path, whole)
    with pytest.raises(RunError, match=r"seed-0\.json: 'study' is missing"):
        read_records(results, "runs")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": 3}, "'study' is missing, or neither a str nor null"),
        ({"versions": {}}, "'versions.python' is missing or no str"),
        ({"machine": {}}, "'machine.cpu' is missing or no str"),
        ({"training": {"seconds": 1}}, "'training.steps' is missing or no number"),
        ({"settings": {}}, "'settings.model' is missing or no dict"),
        ({"settings": {"model": 3}}, "'settings.model' is missing or no dict"),
        ({"settings": {"model": {}}}, "'settings.model' has no signature and no numbers"),
        ({"settings": {"model": {"signature": "P"}}}, "'settings.model': signature 'P': cannot"),
        (
            {"settings": {"model": {"signature": "P2"}, "evidence": None}},
            "'settings.evidence' is missing or no dict",
        ),
        ({"parameters": {}}, "'parameters.all' is missing or no number"),
        ({"relations": {"_hypernym": {}}}, "'relations._hypernym.mrr' is missing or no number"),
        (
            {"training": {"seconds": 1, "steps": 1, "trainings_at_a_time": 1, "evidence": {}}},
            "'training.evidence.hops' is missing or no number",
        ),
    ],
)
def test_what_readers_ask_for_is_missed_by_name(
    results: Path, change: dict[str, Any], message: str
) -> None:
    path = results / "runs" / "wn18rr" / "wn18rr" / "seed-0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(RunError, match=rf"seed-0\.json: {message}.*; restore it from"):
        PaperTables(results, ROOT / "configs")


@pytest.mark.parametrize(
    ("figure", "value", "rule"),
    [
        ("mrr", float("nan"), "nan and must be from 0 to 1"),
        ("mrr", 7, "7 and must be from 0 to 1"),
        ("hits@10", -0.1, "-0.1 and must be from 0 to 1"),
        ("mr", float("inf"), "inf and must be finite and 1 or more"),
    ],
)
def test_figures_that_cannot_be_are_refused(
    results: Path, figure: str, value: float, rule: str
) -> None:
    one = record("wn18rr", "wn18rr", 0, 0.5)
    one["figures"]["self_filter"]["metrics"]["both"][figure] = value
    keep(results, one)
    message = rf"seed-0\.json: 'figures\.self_filter\.metrics\.both\.{figure}' is {rule}; restore"
    with pytest.raises(RunError, match=message):
        summaries(results)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5, 10**400])
def test_seconds_that_cannot_be_are_refused(results: Path, seconds: float) -> None:
    training = {"seconds": seconds, "steps": 1, "trainings_at_a_time": 1}
    keep(results, record("wn18rr", "wn18rr", 0, 0.5, training=training))
    with pytest.raises(RunError, match=r"'training\.seconds' is .* must be finite and 0 or more"):
        summaries(results)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"graph": "umls"}, "runs/umls/wn18rr/seed-0"),
        ({"config": "wn18rr-k32"}, "runs/wn18rr/wn18rr-k32/seed-0"),
        ({"seed": 7}, "runs/wn18rr/wn18rr/seed-7"),
        ({"study": "levers"}, "studies/levers/wn18rr/seed-0"),
    ],
)
def test_a_file_that_lies_where_another_belongs_is_refused(
    results: Path, change: dict[str, Any], place: str
) -> None:
    path = results / "runs" / "wn18rr" / "wn18rr" / "seed-0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    message = rf"seed-0\.json: what is inside belongs to {place}\.json; move it there, or restore"
    with pytest.raises(RunError, match=message):
        read_records(results, "runs")


def test_a_file_of_another_split_is_refused(results: Path) -> None:
    keep(results, record("wn18rr", "wn18rr", 0, 0.5, split="valid"))
    with pytest.raises(
        RunError, match=r"'split' is 'valid', and files of runs/ are ranked on test;"
    ):
        read_records(results, "runs")
    keep(results, record("wn18rr", "wn18rr-E", 0, 0.5, study="table3", split="train"))
    with pytest.raises(RunError, match=r"'split' is 'train', .* studies/ .* on valid or test;"):
        read_records(results, "studies")


PUBLISHED_BETA = {"model": {"signature": "P32", "curvature": "published"}}
"""By a setting that is no more."""


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"digest": "another"}, "other facts"),
        (
            {"settings": {"model": {"signature": "P32"}, "training": {"steps": 9}}},
            r"training\.steps is None there and 9 here",
        ),
        ({"settings": PUBLISHED_BETA}, "other settings"),
    ],
)
def test_no_mean_is_of_seeds_that_were_made_differently(
    results: Path, changes: dict[str, Any], what: str
) -> None:
    keep(results, record("wn18rr", "wn18rr", 3, 0.6, **changes))
    with pytest.raises(
        RunError, match=rf"seed-3\.json: .* than seed-0\.json .*\({what}\).*--again"
    ):
        summaries(results)


def test_seeds_are_alike_whose_settings_differ_in_the_seed_alone(results: Path) -> None:
    for seed in (20, 21):
        settings = PUBLISHED_BETA | {"training": {"seed": seed}}
        keep(results, record("ring", "published", seed, 0.5, settings=settings))
        settings = {"model": {"signature": "P32"}, "training": {"seed": seed}}
        keep(results, record("ring", "small", seed, 0.5, settings=settings))
    assert {one["seeds"] for one in summaries(results)["ring"].values()} == {2}


@pytest.mark.parametrize("name", benchmarks.SECTIONS)
def test_a_damaged_file_of_a_benchmark_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.json"
    path.write_text("{}")
    with pytest.raises(GoldeError, match=rf"{name}\.json: lacks '\w+'; restore it, or run its"):
        benchmarks.section(tmp_path, name)
    full = json.loads((ROOT / "results" / path.name).read_text("utf-8"))
    path.write_text(json.dumps(dict.fromkeys(full, 3)))
    with pytest.raises(GoldeError, match=rf"{name}\.json: cannot be shown: .*; restore it, or run"):
        benchmarks.section(tmp_path, name)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("gpu_step", write_step_plots),
        ("gpu_growth", write_step_plots),
        ("scaling", write_scaling_plot),
    ],
)
def test_a_damaged_file_is_named_where_it_is_drawn(
    tmp_path: Path, name: str, draw: Callable[[Path, Path], Any]
) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / f"{name}.json").write_text("{}")
    with pytest.raises(GoldeError, match=rf"{name}\.json: lacks '\w+'; restore it, or run its"):
        draw(tmp_path, tmp_path)


def row(tables: list[Table], title: str, first: str) -> list[str]:
    (table,) = (one for one in tables if one.title.startswith(title))
    (found,) = (cells for cells in table.rows if cells[0] == first)
    assert len(found) == len(table.head)
    return found


def test_the_paper_has_ours_beside_it(results: Path) -> None:
    tables = PaperTables(results, ROOT / "configs").tables()
    main = "Table 2, WN18RR"
    assert row(tables, main, "GoldE") == ["GoldE", "790", ".525", ".476", ".542", ".615", ""]
    assert row(tables, main, "TransE")[3:5] == ["–", "–"]
    ours = row(tables, main, "ours: wn18rr, standard")
    assert ours[1:] == ["525", ".525", ".475", ".525", ".625", "3"]
    assert row(tables, main, "ours: wn18rr, self-filter")[2] == ".530"
    assert row(tables, "Tables 5 and 11, WN18RR", "ours: wn18rr-k32, standard")[1] == ".480"
    geometries = next(one for one in tables if one.title.startswith("Table 3, WN18RR"))
    assert geometries.note.endswith(
        "Ours with 32 numbers an entity or 32 numbers and 2 biases an entity, the published ones at full "
        "size; settings are those of the configuration of that size, chosen for its space, `P32`, and "
        f"tuned for no other. {THEIRS}"
    )
    assert row(tables, "Table 3, WN18RR", "E, one space") == [
        *("E, one space", ".496", ".585", ".432", ".532", "P32", "1"),
    ]
    assert row(tables, "Table 4", "hypernym")[-2:] == [".226", ".525"]
    assert row(tables, "Table 7", "ours")[1:] == ["1 min 41 s", NOT_RUN, NOT_RUN]
    assert row(tables, "Table 9", "ours")[1].endswith(" M")
    assert row(tables, "Figure 3, WN18RR", "6")[3:5] == [".506", ".432"]
    assert row(tables, "Figure 4", "32") == ["32", ".465", ".472", ".482", ".432"]
    (note,) = (one.note for one in tables if one.title.startswith("Figure 4"))
    assert "ours, the embedding alone, on validation, standard protocol, after 500 steps (" in note
    assert (
        " Ours is elliptic (`P32`); the published GoldE is elliptic × hyperbolic. Up to 32" in note
    )
    small = next(one for one in tables if one.title.startswith("Tables 5 and 11, WN18RR"))
    assert small.note == (
        "Ours with 32 numbers an entity, means over seeds, on test. Ours is elliptic (`P32`); the published "
        f"GoldE is elliptic × hyperbolic. {THEIRS}"
    )
    filtered = [one.title for one in tables if THEIRS in one.note]
    assert len(filtered) == 7
    assert not any("FB15k-237" in title for title in filtered)


def test_a_graph_that_is_called_like_a_set_is_none_of_the_paper(results: Path) -> None:
    before = PaperTables(results, ROOT / "configs").tables()
    keep(results, record("fb15k-237", "fb15k-237", 3, 0.9, digest="1"))
    one = record("fb15k-237", "fb15k-237-P", 1, 0.9, digest="1", study="table3", split="valid")
    keep(results, one)
    counts = asdict(entries()["yago3-10"].counts)
    for seed, wrong in enumerate(({}, {"counts": counts | {"train": 100}})):
        keep(results, record("yago3-10", "yago3-10", seed, 0.9, **wrong))
    tables = PaperTables(results, ROOT / "configs").tables()
    assert [table.rows for table in tables] == [table.rows for table in before]
    notes = [table.note for table in tables if "Left out" in table.note]
    assert len(notes) == 2
    assert all(
        note.endswith(" Left out here and below: 2 results on other facts of that name.")
        for note in notes
    )
    keep(results, record("yago3-10", "yago3-10", 2, 0.5, counts=counts))
    found = PaperTables(results, ROOT / "configs").tables()
    assert row(found, "Table 2, YAGO3-10", "ours: yago3-10, standard")[2] == ".500"


@pytest.mark.parametrize(
    ("study", "variant", "model"),
    [
        ("table3-mine", "wn18rr-PQ", {"kind": "complex", "numbers": 32}),
        ("table3-mine", "wn18rr-mine", {"signature": "E7"}),
        ("figure3-mine", "wn18rr-E", {"signature": "E7"}),
        ("figure3-mine", "wn18rr-E-7", {"signature": "E7"}),
        ("figure3-mine", "wn18rr-E-6", {"kind": "complex", "numbers": 32}),
        ("figure4-mine", "wn18rr-E", {"signature": "E7"}),
        ("figure4-mine", "wn18rr-nan", {"signature": "E7"}),
    ],
)
def test_variants_that_the_paper_has_no_place_for_are_left_out(
    results: Path, study: str, variant: str, model: dict[str, Any]
) -> None:
    evidence = PaperTables(results, ROOT / "configs")
    before = evidence.tables(), evidence.size_curve(), evidence.dimension_curves("wn18rr")
    one = record("wn18rr", variant, 5, 0.9, study=study, settings={"model": model})
    keep(results, one)
    evidence = PaperTables(results, ROOT / "configs")
    assert (evidence.tables(), evidence.size_curve(), evidence.dimension_curves("wn18rr")) == before
    assert evidence.ranked_on("figure3") == evidence.ranked_on("figure4") == "validation"


def test_other_relations_are_not_those_of_table_4(results: Path) -> None:
    before = PaperTables(results, ROOT / "configs").relations()
    keep(results, record("wn18rr", "wn18rr", 3, 0.9, relations={"likes": {"mrr": 0.9}}))
    assert PaperTables(results, ROOT / "configs").relations() == before


def test_a_baseline_of_32_numbers_has_them_in_words(results: Path) -> None:
    settings = {"model": {"kind": "complex", "numbers": 32}}
    keep(results, record("wn18rr", "wn18rr-k32", 10, 0.48, settings=settings))
    tables = PaperTables(results, ROOT / "configs").tables()
    small = next(one for one in tables if one.title.startswith("Tables 5 and 11, WN18RR"))
    assert small.note == f"Ours with 32 numbers an entity, means over seeds, on test. {THEIRS}"


@pytest.mark.parametrize(
    "text", ['graph = "wn18rr"', 'graph = "g/wn18rr"\nmodel = {signature = "E7"}']
)
def test_parameters_are_not_counted_of_another_graph_or_without_a_size(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "wn18rr.toml").write_text(text)
    tables = [PaperTables(tmp_path, tmp_path).parameters()]
    assert row(tables, "Table 9", "ours")[1:] == [NOT_RUN] * 3


def test_what_was_not_run_says_so(tmp_path: Path) -> None:
    """Of ours there is no figure at all, but for parameters that were counted."""
    tables = PaperTables(tmp_path, ROOT / "configs").tables()
    for table in tables:
        if not table.title.startswith("Table 9"):
            assert any(NOT_RUN in cells for cells in table.rows), table.title
    for graph in GRAPHS:
        assert row(tables, f"Table 2, {GRAPHS[graph]}", f"ours: {graph}, standard")[1:] == [
            *[NOT_RUN] * 5,
            "",
        ]
    counted = PaperTables(tmp_path, tmp_path)
    assert row([counted.parameters()], "Table 9", "ours")[1:] == [NOT_RUN] * 3


def test_published_figures_are_all_there() -> None:
    """As many as the paper prints, in range, and best where it says so."""
    found = paper()
    assert {graph: len(rows) for graph, rows in found["table2"].items()} == {
        "wn18rr": 17,
        "fb15k-237": 17,
        "yago3-10": 11,
    }
    figures = Counter(
        name for rows in found["table2"].values() for r in rows.values() for name in r
    )
    assert figures == {"mrr": 45, "hits@10": 45, "hits@1": 43, "hits@3": 43, "mr": 29}
    assert all(len(rows) == 6 for rows in found["table3"].values())
    assert sum(one["facts"] for one in found["table4"].values()) == 3134  # the test split of WN18RR
    assert {graph: len(rows) for graph, rows in found["table11"].items()} == {
        "wn18rr": 8,
        "fb15k-237": 8,
        "yago3-10": 6,
    }
    assert [len(found[name]) for name in ("table7", "table9", "figure4")] == [3, 5, 3]
    assert all(len(points) == 8 for points in found["figure4"].values())
    assert all(len(p) == 6 for curves in found["figure3"].values() for p in curves.values())
    for graph in GRAPHS:
        for table in ("table2", "table11"):
            best = max(found[table][graph].values(), key=lambda block: block["mrr"])
            assert best == found[table][graph]["GoldE"]
        assert found["table3"][graph]["PQ"]["mrr"] == found["table2"][graph]["GoldE"]["mrr"]
    assert found["figure4"]["GoldE"][3] == [32, found["table11"]["wn18rr"]["GoldE"]["mrr"]]


def test_plots_are_drawn(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in ("a", "b"):
        drawn = write_plots(PaperTables(results, ROOT / "configs"), tmp_path / folder)
        assert [path.name for path in drawn] == [
            f"figure{n}.{kind}" for n in (3, 4) for kind in ("png", "svg")
        ]
    for name in ("figure3.png", "figure4.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_pages_are_written_and_written_again_as_they_are(results: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "docs").mkdir()
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{OPEN}\nold\n{CLOSE}\nafter\n")
    written = write_pages(tmp_path, results)
    assert written[:3] == [readme, tmp_path / "docs" / "results.md", tmp_path / "docs" / "paper.md"]
    text = readme.read_text("utf-8")
    assert text.startswith(f"before\n{OPEN}\n### Reproduced configurations\n")
    assert text.endswith(f"\n{CLOSE}\nafter\n")
    assert "| wn18rr | wn18rr | 3 | .5252±.0011 |" in text
    assert all(
        path.read_text("utf-8") == page for path, page in rendered(tmp_path, results).items()
    )
    page = (tmp_path / "docs" / "paper.md").read_text("utf-8")
    assert page.count("assets/figure3.png") == page.count("assets/figure4.svg") == 1
    readme.write_text("nothing to write between\n")
    with pytest.raises(GoldeError, match="put both where results belong"):
        rendered(tmp_path, results)
    shutil.rmtree(tmp_path / "docs")
    with pytest.raises(GoldeError, match=r"no README\.md and docs/"):
        rendered(tmp_path, results)


def test_trainings_that_shared_the_machine_are_named_unless_all_did() -> None:
    crowded = {"seconds": 1.0, "steps": 1, "trainings_at_a_time": 4}
    both = [record("g", "alone", 0, 0.5), record("g", "crowded", 0, 0.5, training=crowded)]
    assert shared(both[:1]) == ""
    others = "at a time by one command, other commands not counted"
    assert shared(both) == f", up to 4 trainings of crowded {others}"
    assert shared(both[1:]) == f", up to 4 trainings {others}"
    many = [record("g", name, 0, 0.5, training=crowded) for name in "abcd"]
    assert shared([both[0], *many]) == f", up to 4 trainings {others}"
