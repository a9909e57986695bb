"""What a file asks for: one configuration over seeds, or a study over variants."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from golde.config import Config
from golde.errors import ConfigError, RetiredSettingError
from golde.geometry import Signature
from golde.models.kinds import build
from golde.report.paper import paper
from golde.report.results import read_records
from golde.report.studies import read_jobs
from tiny import quick

ROOT = Path(__file__).parents[2]
SHIPPED = [*sorted(ROOT.glob("configs/*.toml")), *sorted(ROOT.glob("studies/*.toml"))]

STUDY = """
base = "small.toml"
steps = 7
training = {batch_size = 5}

[[variants]]
name = "ring-E"
model = {signature = "E4x2"}

[[variants]]
name = "ring-PQ"
training = {batch_size = 6}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text('graph = "ring"\n' + quick().to_toml())
    path = tmp_path / "table.toml"
    path.write_text(STUDY)
    return path


def test_variants_are_the_base_with_what_each_changes(study: Path) -> None:
    first, second = read_jobs(study)
    assert (first.study, first.name, first.graph, first.split) == (
        "table",
        "ring-E",
        "ring",
        "valid",
    )
    assert first.config.model.signature == "E4x2"
    assert second.config.model.signature == "P3x2 Q4x2"
    assert [job.config.training.batch_size for job in (first, second)] == [5, 6]
    assert {job.config.training.steps for job in (first, second)} == {7}
    assert [job.seed for job in read_jobs(study, seeds=[3, 1, 3], only=["ring-E"])] == [3, 1]


def test_a_configuration_is_ranked_on_test_over_three_seeds(study: Path) -> None:
    jobs = read_jobs(study.with_name("small.toml"))
    assert [(job.name, job.study, job.split, job.seed) for job in jobs] == [
        ("small", None, "test", seed) for seed in (0, 1, 2)
    ]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            'base = "small.toml"',
            "",
            r"variant 'ring-E' changes no configuration; name one with base",
        ),
        (
            'base = "small.toml"',
            'base = "nowhere.toml"',
            r"table\.toml: .*'nowhere\.toml' is no file",
        ),
        ("steps = 7", "seeds = [0, -1]", r"table\.toml: seeds\.1 = -1 is not valid"),
        ("steps = 7", "seeds = [true]", r"table\.toml: seeds\.0 = True is not valid"),
        ("{batch_size = 6}", "{seed = 6}", r"table\.toml: training\.seed = 6 does nothing"),
        ("steps = 7", "step = 7", r"table\.toml: unknown key 'step'; known are base, .*, variants"),
        (
            "{batch_size = 6}",
            "{}\nstep = 7",
            r"variant 2: unknown key 'step'; known are base, .*name",
        ),
        ('name = "ring-PQ"', "", r"variant 2: has no name; add one that begins with its graph"),
        (STUDY, 'base = "small.toml"', r"table\.toml: has no variants; add one below \[\[variants"),
        (STUDY, "variants = [3]", r"table\.toml: variant 1: 3 is not valid: it should be a table"),
        (STUDY, "variants = []", r"variants = \[\] is not valid: it should have one at least"),
        (STUDY, "variants = 3", r"variants = 3 is not valid: it should be a list; .*\[\[variants"),
        (
            'base = "small.toml"',
            'base = "table.toml"',
            r"table\.toml: variant 'ring-E': base: .*section",
        ),
        ("ring-PQ", "x" * 101, r"variant 2: name = 'x+' is not valid: .*100 characters at most"),
        ("{batch_size = 6}", "3", r"variant 2: training = 3 is not valid: it should be a table"),
        ("steps = 7", "steps = true", r"table\.toml: steps = True is not valid"),
        (
            "training = {batch_size = 6}",
            'preset = "nope"',
            r"table\.toml: variant 'ring-PQ': unknown preset 'nope'",
        ),
        ("steps = 7", f"x = {'[' * 5000}", r"table\.toml: .*nested too deeply"),
        ("steps = 7", 'split = "train"', r"split = 'train' is not valid: .*'valid' or 'test'"),
        ("ring-PQ", "ring-E", r"two variants are called 'ring-E'"),
        ("ring-PQ", "ring/PQ", r"variant 2: name = 'ring/PQ' is not valid: .*letters, digits, "),
        ('"E4x2"', '"Z9"', r"table\.toml: variant 'ring-E': model\.signature 'Z9': "),
        ("{signature", "{signatura", r"variant 'ring-E': unknown key 'model\.signatura'"),
    ],
)
def test_mistakes_are_named(study: Path, before: str, after: str, message: str) -> None:
    study.write_text(STUDY.replace(before, after))
    with pytest.raises(ConfigError, match=message):
        read_jobs(study)


@pytest.mark.parametrize("name", ["..toml", "...toml", "-x.toml", "a+b.toml", ".toml"])
def test_a_name_that_is_no_folder_of_its_own_is_refused(study: Path, name: str) -> None:
    path = study.with_name(name)
    for content in (study, study.with_name("small.toml")):
        path.write_text(content.read_text())
        with pytest.raises(ConfigError, match=r"toml: results are kept under .*; rename it"):
            read_jobs(path)


def test_more_mistakes_are_named(study: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"--only x: .*has no such variant; it has ring-E, ring-PQ"
    ):
        read_jobs(study, only=["x"])
    plain = study.with_name("small.toml")
    with pytest.raises(ConfigError, match="has no variants"):
        read_jobs(plain, only=["x"])
    seeded = 'graph = "ring"\n' + quick(seed=5).to_toml()
    plain.write_text(seeded)
    assert [job.seed for job in read_jobs(plain, seeds=[5])] == [5]
    with pytest.raises(ConfigError, match=r"small\.toml: training\.seed = 5 .*give --seeds 5"):
        read_jobs(plain)
    plain.write_text(quick().to_toml())
    with pytest.raises(
        ConfigError, match=r'small\.toml: names no graph; add a line such as graph = "wn'
    ):
        read_jobs(plain)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_ships_can_be_trained(path: Path) -> None:
    """Each makes a model, ends where it says, and studies stay off test."""
    import torch

    for job in read_jobs(path, seeds=[0]):
        assert job.split == ("valid" if job.study else "test")
        assert job.config.training.steps
        with torch.device("meta"):
            size = build(job.config.model, 10, 2).entity.shape[1]
        if job.study == "figure4":
            assert size == pytest.approx(float(job.name.rpartition("-")[2]), rel=0.011)
        elif job.name.endswith("-k32") or (job.study or "").startswith(("table3", "small-")):
            assert size == 32
        elif job.study:
            base = Config.load(ROOT / "configs" / f"{job.graph}.toml").model.signature
            assert size == pytest.approx(Signature.parse(base or "").numbers, rel=0.011)


def test_a_preset_replaces_the_model_but_its_size_and_margin(study: Path) -> None:
    text = study.read_text("utf-8")
    study.write_text(text + '\n[[variants]]\nname = "ring-TransE"\npreset = "transe"\n')
    (job,) = read_jobs(study, only=["ring-TransE"])
    (base,) = read_jobs(study, only=["ring-PQ"])
    assert (job.config.model.kind, job.config.model.signature) == ("transe", None)
    assert job.config.model.numbers == Signature.parse(base.config.model.signature or "").numbers
    assert job.config.model.margin == base.config.model.margin
    assert job.config.training.steps == base.config.training.steps
    study.write_text(text + '\n[[variants]]\nname = "ring-x"\npreset = "transo"\n')
    with pytest.raises(ConfigError, match="transe"):
        read_jobs(study)


def test_studies_have_a_variant_for_every_cell_of_the_paper() -> None:
    def names(study: str) -> set[str]:
        return {job.name for job in read_jobs(ROOT / "studies" / f"{study}.toml")}

    cells = {f"{g}-{row}" for g, rows in paper()["table3"].items() for row in rows}
    assert names("table3") | names("table3-yago3-10") == cells
    assert names("figure3") == {
        f"{graph}-{letter}-{place}"
        for graph, curves in paper()["figure3"].items()
        for letter, points in curves.items()
        for place, _ in points
    }
    assert names("figure4") == {f"wn18rr-{place}" for place, _ in paper()["figure4"]["GoldE"]}


def test_the_page_says_what_each_command_trains() -> None:
    page = (ROOT / "docs" / "reproduce.md").read_text("utf-8")
    rows = re.findall(r"`golde reproduce (\S+\.toml)` \| (\d+) (\w+) × ([\d,]+) steps", page)
    assert {ROOT / file for file, *_ in rows} == {p for p in SHIPPED if p.stem != "wn18rr-45s"}
    for file, count, _, steps in rows:
        jobs = read_jobs(ROOT / file)
        assert len(jobs) == int(count), file
        assert {job.config.training.steps for job in jobs} == {int(steps.replace(",", ""))}, file


def test_every_recorded_training_is_one_that_a_shipped_file_asks_for() -> None:
    """But for those by settings that are no more, which nothing can ask for."""
    asked = {
        (job.study, job.graph, job.name, job.seed): job
        for path in SHIPPED
        for job in read_jobs(path)
    }
    found = [r for kind in ("runs", "studies") for r in read_records(ROOT / "results", kind)]
    assert found
    for record in found:
        try:
            recorded = Config.from_dict(record["settings"])
        except RetiredSettingError:
            continue
        job = asked[record["study"], record["graph"], record["config"], record["seed"]]
        given = job.config.model_dump(exclude_none=True, exclude_defaults=True)
        for section in ("model", "training", "evidence"):
            kept = recorded.model_dump()[section]
            assert given.get(section, {}).items() <= kept.items(), (str(job), section)
