"""Whole queries: views over views (`references`), WITH and SELECT (`queries`), FROM, UNION and its kin."""
