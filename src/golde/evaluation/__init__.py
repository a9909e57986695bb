"""Scores in, honest figures out: filtered ranks, metrics, baselines and their protocol."""
