"""The pairwise distance over a product of components, in the form that suits each device."""

from golde.kernels.finish import Finish, Geodesic, Root
from golde.kernels.pairwise import Core, can_compile, paired, pairwise, pairwise_reference

__all__ = [
    "Core",
    "Finish",
    "Geodesic",
    "Root",
    "can_compile",
    "paired",
    "pairwise",
    "pairwise_reference",
]
