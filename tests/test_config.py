"""One schema: TOML in and out, ``--set``, and errors that name the fix."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golde.config import Config, ModelConfig, TrainingConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import ConfigError
from golde.training.defaults import resolve
from tiny import ring

positive_floats = st.floats(1e-6, 1e3)
configs = st.builds(
    Config,
    model=st.builds(
        ModelConfig,
        signature=st.none() | st.sampled_from(["E8", "P8x8 Q9x8"]),
        reflections=st.sampled_from(["k", "k-1", "alternating"]),
        block=st.none() | st.integers(1, 8),
        norm=st.sampled_from([1, 2]),
        weights=st.dictionaries(st.sampled_from(["E", "P", "Q"]), positive_floats),
        init_scale=st.none() | positive_floats,
    ),
    training=st.builds(
        TrainingConfig,
        loss=st.sampled_from(["self-adversarial", "cross-entropy"]),
        steps=st.none() | st.integers(1, 10**9),
        learning_rate=positive_floats,
        subsampling=st.booleans(),
    ),
)


@given(configs)
def test_toml_reads_back_what_it_wrote(config: Config) -> None:
    assert Config.from_dict(tomllib.loads(config.to_toml())) == config


def test_overrides_lie_on_top_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[model]\nsignature = "E4"\nnorm = 2\n[training]\nsteps = 10\n', "utf-8")
    config = Config.load(path, ["training.steps=20", "model.bias = true"])
    assert (config.model.signature, config.model.norm, config.model.bias) == ("E4", 2, True)
    assert config.training == TrainingConfig(steps=20)


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("training.learning_rate=3e-3", "training", "learning_rate", 0.003),
        ("training.loss=cross-entropy", "training", "loss", "cross-entropy"),
        ('training.loss="cross-entropy"', "training", "loss", "cross-entropy"),
        ("model.signature=P8x8 Q9x8", "model", "signature", "P8x8 Q9x8"),
        ("model.reciprocal=false", "model", "reciprocal", False),
        ("model.reflections=k-1", "model", "reflections", "k-1"),
        ("model.weights.P=0.5", "model", "weights", {"P": 0.5}),
        ("model.weights={P = 0.5, Q = 2}", "model", "weights", {"P": 0.5, "Q": 2.0}),
    ],
)
def test_set_reads_values_without_quotes(override: str, section: str, key: str, value: Any) -> None:
    assert getattr(getattr(Config.load(overrides=[override]), section), key) == value


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("training.step=5", "unknown key 'training.step'; did you mean 'training.steps'"),
        ("model.learning_rate=1", "did you mean 'training.learning_rate'"),
        ("modle.norm=1", "unknown section 'modle'; did you mean 'model'"),
        ("training.zzz=1", "unknown key 'training.zzz'; (did you mean|known are)"),
        ("training.loss=crossentropy", "training.loss = 'crossentropy'.*'cross-entropy'"),
        ("training.steps=many", "training.steps = 'many' is not valid: .*whole number"),
        ("training.steps=0", "training.steps = 0 is not valid: .*greater than or equal to 1"),
        ("training.warmup=nan", "training.warmup = nan is not valid: .*finite"),
        ("model.norm=3", "model.norm = 3 is not valid: it should be 1 or 2"),
        ("model.weights.P=0", "model.weights.P = 0 is not valid: .*greater than 0"),
        ("model=3", "write section.key=value"),
        ("training.steps", "write section.key=value"),
        ("training.=5", "write section.key=value"),
        ("training.steps.more=5", "training.steps"),
    ],
)
def test_errors_name_the_key_and_the_closest_valid_one(override: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Config.load(overrides=[override])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"[model\n", "a.toml: cannot read the configuration: .*line 1"),
        (b"[m]\n\xff\xfe", "a.toml: cannot read the configuration: byte 5 is not UTF-8; save it"),
        (b"model = 3\n", "a.toml: 'model' is a section, not a value"),
        (b"[training]\nsteps = 5\nstep = 6\n", "a.toml: unknown key 'training.step'"),
        (None, r"a.toml: cannot read the configuration: No such file or directory; check"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, text: bytes | None, named: str) -> None:
    path = tmp_path / "a.toml"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(ConfigError, match=named):
        Config.load(path)


def test_what_is_not_given_is_as_in_the_base(tmp_path: Path) -> None:
    base = Config.load(overrides=["training.regulariser=n3", "training.regulariser_weight=0.1"])
    path = tmp_path / "a.toml"
    path.write_text("[training]\nsteps = 5\n")
    found = Config.load(path, ["training.regulariser_weight=0.2"], base=base)
    assert found == base.with_values(training={"steps": 5, "regulariser_weight": 0.2})
    assert Config.load(base=base) == base
    path.write_text("training = 5\n")
    with pytest.raises(ConfigError, match=r"a\.toml: 'training' is a section"):
        Config.load(path, base=base)


def test_a_resolved_configuration_leaves_nothing_open_and_keeps_what_was_chosen() -> None:
    facts = [(f"e{i}", "next", f"e{i + 1}") for i in range(20)]
    chosen = Config.load(overrides=["training.steps=7", "model.signature=E4"])
    resolved = resolve(chosen, KnowledgeGraph.from_triples(facts))
    assert (resolved.training.steps, resolved.model.signature) == (7, "E4")
    by_default = resolve(Config(), KnowledgeGraph.from_triples(facts))
    for section in (by_default.model, by_default.training):
        left_open = {key for key, value in section if value is None}
        # The first two mean what they say when unset; a signature says how many numbers there are.
        assert left_open <= {"block", "init_scale", "numbers"}
    assert Config.from_dict(tomllib.loads(by_default.to_toml())) == by_default


def test_every_choice_made_from_the_graph_reaches_a_larger_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = KnowledgeGraph.from_triples([(f"e{i}", "next", f"e{i + 1}") for i in range(20)])
    small = resolve(Config(), graph)
    monkeypatch.setattr("golde.training.defaults.SMALL_GRAPH", 40)
    large = resolve(Config(), graph)
    assert large.model.signature != small.model.signature
    assert large.model.margin != small.model.margin
    assert large.training.learning_rate != small.training.learning_rate


@pytest.mark.parametrize(
    "setting",
    [
        "training.regulariser=n3",
        "training.regulariser_weight=0.1",
        "evidence.joined=true",
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=setting.partition("=")[0]):
        Config.load(overrides=[setting])


def test_a_file_may_name_its_graph_and_a_run_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('graph = "ring"\n[model]\nnorm = 2\n')
    config = Config.load(path)
    assert (config.graph, config.model.norm) == ("ring", 2)
    assert Config.load(path, base=Config()).graph == "ring"
    assert Config.load(overrides=["model.norm=1"], base=config).graph == "ring"
    assert resolve(config, ring()).graph is None
    path.write_text("graph = 3\n")
    with pytest.raises(ConfigError, match=r"a\.toml: graph = 3 is not valid"):
        Config.load(path)


@pytest.mark.parametrize(
    "setting",
    [
        "steps = true",
        'steps = "20"',
        "steps = 20.0",
        "learning_rate = true",
        'temperature = "1"',
        "compile = true",
        "subsampling = 1",
        "loss = 1",
    ],
)
def test_a_value_of_another_type_is_refused_and_not_converted(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"[training]\n{setting}\n")
    key, _, value = setting.partition(" = ")
    shown = {"true": "True"}.get(value, value.replace('"', "'"))
    with pytest.raises(ConfigError, match=rf"a\.toml: training\.{key} = {shown} is not valid: it"):
        Config.load(path)


def test_whole_numbers_are_numbers_and_words_of_python_are_booleans() -> None:
    found = Config.load(overrides=["model.margin=9", "model.weights.P=.5", "model.bias=True"]).model
    assert (found.margin, found.weights, found.bias) == (9.0, {"P": 0.5}, True)


def test_numbers_of_numpy_are_taken() -> None:
    values = {"numbers": np.int64(64), "margin": np.float32(2), "bias": np.bool_(True)}
    assert Config.from_dict({"model": values | {"kind": "complex"}}).model == ModelConfig(
        kind="complex", numbers=64, margin=2.0, bias=True
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('grpah = "nations"', r"unknown section 'grpah'; did you mean 'graph'\?"),
        ("steps = 3", r"steps is a setting of training; write it below a line \[training\]$"),
        ('signature = "P8"', r"signature is a setting of model; write it below a line \[model\]$"),
        ("xyzzy = 3", r"known are evidence, graph, model, training"),
    ],
)
def test_what_stands_outside_of_sections_is_told_where_it_belongs(
    tmp_path: Path, line: str, told: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(line + "\n")
    with pytest.raises(ConfigError, match=rf"a\.toml: .*{told}"):
        Config.load(path)


@pytest.mark.parametrize("setting", ["margin = 1e39", "init_scale = 1e39", "weights = {P = 1e39}"])
def test_numbers_that_scores_cannot_hold_are_refused(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f"[model]\n{setting}\n")
    with pytest.raises(ConfigError, match=r"should be less than or equal to 1000000"):
        Config.load(path)


def test_a_setting_that_is_no_more_is_dropped_where_its_value_still_holds(tmp_path: Path) -> None:
    """Runs of before have it in their files."""
    path = tmp_path / "config.toml"
    path.write_text('[model]\ncurvature = "learned"\nsignature = "Q4x2"\n')
    assert Config.load(path) == Config.from_dict({"model": {"signature": "Q4x2"}})
    path.write_text('[model]\ncurvature = "scale"\n')
    said = (
        r"model\.curvature = 'scale' is no more: β .* is its curvature; leave it out, and open what was "
        r"trained with it by the version of GoldE that did so$"
    )
    with pytest.raises(ConfigError, match=r"config\.toml: " + said):
        Config.load(path)
    assert Config.load(overrides=["model.curvature=learned"]) == Config()
    with pytest.raises(ConfigError, match=said):
        Config.load(overrides=["model.curvature=scale"])
    assert Config.load(overrides=["training.label_smoothing=0"]) == Config()
    with pytest.raises(ConfigError, match=r"label_smoothing = 0\.1 is no more"):
        Config.load(overrides=["training.label_smoothing=0.1"])
