"""Where the parameters of a model are."""

from __future__ import annotations

import torch
from torch import nn

from golde.models.contract import Model


def place(model: Model, device: torch.device, dtype: torch.dtype, *, host: bool) -> Model:
    """The model on ``device`` and in this precision; with ``host`` its entity table stays in host memory."""
    if not host:
        return model.to(device, dtype)
    table = model.entity.detach().to(dtype)
    del model.entity  # or it would be moved with the others
    model.to(device, dtype)
    model.entity = nn.Parameter(table)
    return model
