"""The pairwise distance over a product of components."""

from golde.kernels.finish import Finish, Geodesic, Root
from golde.kernels.pairwise import Core, paired, pairwise, pairwise_reference

__all__ = ["Core", "Finish", "Geodesic", "Root", "paired", "pairwise", "pairwise_reference"]
