"""Drives the pure core through a seeded, simulated world.

One duty: sources that change by themselves, channels that delay and reorder, and a scheduler that a
seed determines entirely. It must not know live adapters.
"""
