"""Figures that come from runs: trained and ranked by one command, stored, and rendered into pages."""
