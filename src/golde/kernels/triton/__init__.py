"""The pairwise distance as fused GPU kernels; ``distance`` is imported only where ``supports`` agrees."""

from golde.kernels.triton.blocks import Blocks, Configuration, configuration
from golde.kernels.triton.support import supports

__all__ = ["Blocks", "Configuration", "configuration", "supports"]
