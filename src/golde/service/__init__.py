"""Runs over HTTP: ``golde serve``. Needs the extra ``serve``."""
