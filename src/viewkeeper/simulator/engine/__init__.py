"""Seeded worlds that drive the engine: the machine that runs live, with simulated sources and a ledger.

Begin with `world`; `generator` draws scenarios, `judging` decides about every state that was shown.
"""
