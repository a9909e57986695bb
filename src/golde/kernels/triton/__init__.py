"""The heavy work as fused kernels for a GPU: distances, maps, draws, loss, optimisers, ranks.

``X_kernels`` has the kernels of ``X`` and their derivation, ``X`` what launches them; small ones are one
module. ``blocks``, ``groups`` and ``support`` can be imported anywhere. All others are imported where they
are first used, once ``support`` agrees, since Triton reads its surroundings when a kernel is defined.
"""

from golde.kernels.triton.blocks import Blocks, Configuration, configuration
from golde.kernels.triton.support import has_triton, supports

__all__ = ["Blocks", "Configuration", "configuration", "has_triton", "supports"]
