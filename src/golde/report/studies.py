"""What a file asks to be trained: a configuration, or the variants of a study.

A study is a configuration and what is changed in it, one variant at a time:

    base = "../configs/wn18rr.toml"     # a path from this file
    split = "valid"                     # what is ranked; "test" has to be said
    seeds = [0]
    steps = 8000                        # for all variants
    training = {validate_every = 2000}  # settings for all variants; model likewise

    [[variants]]
    name = "wn18rr-E"                   # its folder; the graph first, for `golde report --paper`
    model = {signature = "E800", weights = {}}

A variant may have a ``base`` of its own, and a ``preset``, which replaces the whole model but its margin and
its bias of loops by one of as many numbers an entity. Embeddings are compared as they are: evidence counts
beside them where the study or variant says so (``evidence = {hops = 2}``), whatever the base has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from golde.config import Config, ModelConfig
from golde.errors import ConfigError, GoldeError
from golde.geometry import Signature
from golde.models.presets import preset
from golde.written_settings import read_toml

SEEDS = (0, 1, 2)
"""Of a configuration, unless told otherwise."""


NAME = re.compile(r"\w[\w .-]*")
"""What a configuration or study may be called: its name is a folder, a word and a cell of tables."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    base: str | None = None
    model: dict[str, Any] = {}
    training: dict[str, Any] = {}
    evidence: dict[str, Any] = {}


class _Variant(_Table):
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    preset: str | None = None


class _Study(_Table):
    split: Literal["valid", "test"] = "valid"
    seeds: list[Annotated[int, Field(ge=0, lt=2**32, strict=True)]] = Field(
        default=[0], min_length=1
    )
    steps: int | None = Field(default=None, ge=1, strict=True)
    variants: list[_Variant] = Field(min_length=1)


_LACKING = {
    "variants": "one below [[variants]]",
    "name": 'one that begins with its graph, such as name = "wn18rr-E"',
}
_RULES = {
    "string_pattern_mismatch": "it should be letters, digits, '.', '_' and '-', a letter or digit first",
    "string_too_long": "it should have 100 characters at most",
    "too_short": "it should have one at least",
    "list_type": "it should be a list; variants are written as [[variants]]",
    "dict_type": "it should be a table, such as {steps = 2000}",
    "model_type": "it should be a table, such as those below [[variants]]",
}
"""What to say of an error in place of the library's words, by its kind."""


@dataclass(frozen=True)
class Job:
    """One training and what is ranked afterwards."""

    name: str  # of the configuration or variant
    study: str | None
    graph: str
    config: Config  # its seed included
    split: str
    source: str  # the file that asks for it, and its variant there, in words

    @property
    def seed(self) -> int:
        return self.config.training.seed

    @property
    def kind(self) -> str:
        """The part of ``results/`` that it belongs to."""
        return "studies" if self.study else "runs"

    def folder(self, graph: str) -> Path:
        """Where its results, and its run, are kept within the folder of either."""
        return Path(self.study or graph, self.name)

    def __str__(self) -> str:
        return f"{self.study or self.graph}/{self.name}, seed {self.seed}"


def read_jobs(
    path: Path, *, seeds: Sequence[int] | None = None, only: Sequence[str] = ()
) -> list[Job]:
    """Every training that a configuration or study asks for; ``only`` some variants of a study."""
    content = read_toml(path)
    if not NAME.fullmatch(path.stem):
        raise ConfigError(
            f"{path}: results are kept under the file's name, and {path.stem!r} cannot be one; rename it "
            "to a letter or digit, then letters, digits, spaces, '.', '_' and '-'"
        )
    if "variants" in content or ("base" in content and "graph" not in content):
        return _of_study(path, content, seeds, only)
    if only:
        raise ConfigError(
            f"--only {only[0]}: {path} is a configuration and has no variants; leave it out"
        )
    config = Config.load(path)
    if config.training.seed and seeds is None:
        raise ConfigError(
            f"{path}: training.seed = {config.training.seed} does nothing here, where several seeds are "
            f"trained; leave it out, or give --seeds {config.training.seed}"
        )
    graph = _graph(config, path)
    _refuse_no_signature(config, str(path))
    return [
        Job(path.stem, None, graph, _seeded(config, seed), "test", str(path))
        for seed in _once(seeds or SEEDS)
    ]


def _of_study(
    path: Path, content: dict[str, Any], seeds: Sequence[int] | None, only: Sequence[str]
) -> list[Job]:
    study = _validated(path, content)
    names = [variant.name for variant in study.variants]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ConfigError(
            f"{path}: two variants are called {twice[0]!r}; give each a name of its own"
        )
    if unknown := [name for name in only if name not in names]:
        raise ConfigError(
            f"--only {unknown[0]}: {path} has no such variant; it has {', '.join(names)}"
        )
    jobs = []
    for variant in study.variants:
        if only and variant.name not in only:
            continue
        config, base = _config(path, study, variant)
        graph = _graph(config, base)
        jobs += [
            Job(
                variant.name,
                path.stem,
                graph,
                _seeded(config, seed),
                study.split,
                _source(path, variant),
            )
            for seed in _once(seeds or study.seeds)
        ]
    return jobs


def _validated(path: Path, content: dict[str, Any]) -> _Study:
    try:
        return _Study.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
    place, loc = str(path), first["loc"]
    table: type[_Table] = _Study
    if loc[0] == "variants" and len(loc) > 1:
        place, table, loc = f"{path}: variant {int(loc[1]) + 1}", _Variant, loc[2:]
    key = ".".join(map(str, loc))
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(table.model_fields))
        raise ConfigError(f"{place}: unknown key {key!r}; known are {known}")
    if first["type"] == "missing":
        raise ConfigError(f"{place}: has no {key}; add {_LACKING[key]}")
    rule = _RULES.get(first["type"]) or first["msg"].replace("Input should be", "it should be")
    what = f"{key} = {first['input']!r}" if key else repr(first["input"])
    raise ConfigError(f"{place}: {what} is not valid: {rule}")


def _config(path: Path, study: _Study, variant: _Variant) -> tuple[Config, Path]:
    """The configuration of a variant, and the file that it changes."""
    base = variant.base or study.base
    if base is None:
        raise ConfigError(
            f'{path}: variant {variant.name!r} changes no configuration; name one with base = "FILE"'
        )
    file = path.parent / base
    if not file.is_file():
        raise ConfigError(
            f"{path}: variant {variant.name!r}: base = {base!r} is no file; name one by its path from the "
            "folder of the study"
        )
    try:
        config = Config.load(file)
    except ConfigError as error:
        raise ConfigError(f"{path}: variant {variant.name!r}: base: {error}") from None
    values = config.model_dump()
    if variant.preset is not None:
        try:
            values["model"] = _replaced(config.model, variant.preset)
        except GoldeError as error:
            raise ConfigError(f"{path}: variant {variant.name!r}: {error}") from None
    if study.steps is not None:
        values["training"]["steps"] = study.steps
    for changes in (study, variant):
        if "seed" in changes.training:
            raise ConfigError(
                f"{path}: training.seed = {changes.training['seed']!r} does nothing in a study; name its "
                "seeds at the top, such as seeds = [0, 1]"
            )
        values["model"] |= changes.model
        values["training"] |= changes.training
    values["evidence"] = study.evidence | variant.evidence
    source = _source(path, variant)
    config = Config.from_dict(values, source=source)
    _refuse_no_signature(config, source)
    return config, file


def _source(path: Path, variant: _Variant) -> str:
    return f"{path}: variant {variant.name!r}"


def _refuse_no_signature(config: Config, source: str) -> None:
    """What cannot be a space should be heard of before anything is trained."""
    if config.model.signature is not None:
        try:
            Signature.parse(config.model.signature)
        except GoldeError as error:
            raise ConfigError(f"{source}: model.{error}") from None


def _replaced(model: ModelConfig, name: str) -> dict[str, Any]:
    """A preset of as many numbers an entity, with the margin and the bias of loops of what it replaces."""
    numbers = Signature.parse(model.signature).numbers if model.signature else model.numbers
    if numbers is None:
        raise ConfigError(
            f"preset = {name!r} replaces a model whose size is not said; give its configuration a "
            "model.signature"
        )
    kept = {"margin": model.margin, "loop_bias": model.loop_bias}
    return preset(name, numbers).model_dump() | kept


def _graph(config: Config, path: Path) -> str:
    if config.graph is None:
        raise ConfigError(f'{path}: names no graph; add a line such as graph = "wn18rr" at its top')
    return config.graph


def _seeded(config: Config, seed: int) -> Config:
    return config.with_values(training={"seed": seed})


def _once(seeds: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(seeds))
