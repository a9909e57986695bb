"""The pairwise distance as fused GPU kernels; ``distance`` is imported only where ``supports`` agrees."""

from golde.kernels.triton.blocks import Blocks, Configuration, configuration
from golde.kernels.triton.support import has_triton, supports

__all__ = ["Blocks", "Configuration", "configuration", "has_triton", "supports"]
