"""The pairwise distance over a product of components."""

from golde.kernels.pairwise import Core, Finish, paired, pairwise

__all__ = ["Core", "Finish", "paired", "pairwise"]
