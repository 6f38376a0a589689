"""Viewkeeper keeps materialized views over several autonomous databases right, and proves it."""

__version__ = "0.1.0"
