"""GoldE in the real PyKEEN: its pipeline learns, and its scores are ours."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest
import torch

from golde.errors import ConfigError, MissingExtraError
from golde.interop import pykeen as interop
from golde.models import GoldE

SIGNATURE = "P4x3 Q5x3"
MRR = "both.realistic.inverse_harmonic_mean_rank"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    interop._model_class.cache_clear()
    monkeypatch.setitem(sys.modules, "pykeen.losses", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'golde\[pykeen\]'"):
        _ = interop.GoldEModel


@pytest.fixture(scope="module")
def nations() -> Any:
    pytest.importorskip("pykeen")
    from pykeen.datasets import Nations

    return Nations()


def build(factory: Any, **settings: Any) -> Any:
    return interop.GoldEModel(
        signature=SIGNATURE, settings=settings, triples_factory=factory, random_seed=0
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the package's own
@pytest.mark.parametrize("inverse", [False, True])
def test_a_pipeline_learns(nations: Any, inverse: bool) -> None:
    from pykeen.datasets import Nations
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.pipeline import pipeline

    result = pipeline(
        dataset=Nations(create_inverse_triples=inverse),
        model=interop.GoldEModel,
        model_kwargs={"signature": SIGNATURE},
        negative_sampler_kwargs={"num_negs_per_pos": 16},
        optimizer_kwargs={"lr": 0.01},
        training_kwargs={"num_epochs": 30, "batch_size": 128, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False},
        random_seed=0,
        device="cpu",
    )
    chance = RankBasedEvaluator().evaluate(
        build(result.training),
        nations.testing.mapped_triples,
        additional_filter_triples=[
            nations.training.mapped_triples,
            nations.validation.mapped_triples,
        ],
        use_tqdm=False,
    )
    untrained, mrr = (found.get_metric(MRR) for found in (chance, result))
    assert mrr > untrained + 0.2
    again = pickle.loads(pickle.dumps(result.model))
    batch = nations.testing.mapped_triples
    assert torch.equal(again.predict_hrt(batch), result.model.predict_hrt(batch))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scores_are_those_of_golde(nations: Any) -> None:
    factory = nations.training
    model = build(factory, bias=True)
    own = GoldE(model.golde.config, factory.num_entities, factory.num_relations)
    own.load_state_dict(model.golde.state_dict())
    triples = nations.testing.mapped_triples[:20]
    head, relation, tail = triples.unbind(1)
    close = {"rtol": 1e-4, "atol": 1e-4}
    expected = own.score_triples(triples)
    torch.testing.assert_close(model.score_hrt(triples).squeeze(1), expected)
    every = own.score(head, relation)
    torch.testing.assert_close(model.score_t(triples[:, :2]), every)
    torch.testing.assert_close(
        model.score_t(triples[:, :2]).gather(1, tail[:, None])[:, 0], expected, **close
    )
    heads = model.score_h(triples[:, 1:])
    torch.testing.assert_close(heads.gather(1, head[:, None])[:, 0], expected, **close)
    relations = model.score_r(triples[:, ::2])
    torch.testing.assert_close(relations.gather(1, relation[:, None])[:, 0], expected, **close)
    some = torch.tensor([3, 1])
    torch.testing.assert_close(model.score_t(triples[:, :2], tails=some), every[:, some], **close)
    each = torch.stack([tail, head], 1)
    torch.testing.assert_close(
        model.score_t(triples[:, :2], tails=each), every.gather(1, each), **close
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_reset_starts_anew_and_reciprocals_are_refused(nations: Any) -> None:
    model = build(nations.training)
    before = model.golde.entity.clone()
    model.reset_parameters_()
    assert not torch.equal(model.golde.entity, before)
    assert torch.equal(build(nations.training).golde.entity, before)  # the same seed
    with pytest.raises(ConfigError, match="inverse relations"):
        build(nations.training, reciprocal=True)
