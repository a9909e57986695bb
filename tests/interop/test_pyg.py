"""GoldE in the real PyTorch Geometric: its loader trains it, and its scores are ours."""

from __future__ import annotations

import sys

import pytest
import torch

from golde.errors import MissingExtraError
from golde.interop import pyg as interop
from golde.models import GoldE
from tiny import ring

SIGNATURE = "P4x3 Q5x3"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    interop._model_class.cache_clear()
    monkeypatch.setitem(sys.modules, "torch_geometric.nn.kge", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'golde\[pyg\]'"):
        _ = interop.GoldEModel


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the package's own
def test_its_loop_learns_and_its_scores_are_those_of_golde() -> None:
    pytest.importorskip("torch_geometric")
    torch.manual_seed(0)
    graph = ring()
    model = interop.GoldEModel(20, 2, SIGNATURE, negatives=20)
    assert sum(p.numel() for p in model.parameters()) == sum(
        p.numel() for p in model.golde.parameters()
    )
    held_out = graph.test.T.contiguous()
    _, untrained, _ = model.test(*held_out, batch_size=20, log=False)
    loader = model.loader(*graph.train.T.contiguous(), batch_size=16, shuffle=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(100):
        for head, relation, tail in loader:
            optimiser.zero_grad()
            model.loss(head, relation, tail).backward()
            optimiser.step()
    _, mrr, hits = model.test(*held_out, batch_size=20, k=3, log=False)
    assert mrr > untrained + 0.3
    assert mrr > 0.6
    assert hits == 1.0

    own = GoldE(model.golde.config, 20, 2)
    own.load_state_dict(model.golde.state_dict())
    torch.testing.assert_close(model(*held_out), own.score_triples(graph.test))
    assert model.node_emb.weight is model.golde.entity
    model.reset_parameters()
    assert model.node_emb.weight is model.golde.entity
    assert not torch.equal(model.golde.entity, own.entity)
