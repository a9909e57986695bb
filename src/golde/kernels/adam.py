"""The constants of Adam, as ``torch.optim.Adam`` has them by default, and of rows that miss steps.

Where the latter come from is told in ``golde.kernels.triton.row_adam_kernels``.
"""

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

TINY = 1e-30
"""Norms below this count as this, so that a row of zeros is not pulled."""

MOVING = 256
"""Missed steps that can move a row."""

NEGLIGIBLE = 2e-11
"""Share of the step size up to which a missed step does not move a row."""

NEVER = -1
"""Instead of the steps that a row has been through, of one never drawn: it has missed nothing."""
