"""The constants of Adam, as ``torch.optim.Adam`` has them by default."""

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
