"""The constants of Adam, as ``torch.optim.Adam`` has them by default, and of a pull on rows."""

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

TINY = 1e-30
"""Norms below this count as this, so that a row of zeros is not pulled."""
