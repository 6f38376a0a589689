"""Drives the pure core live: feeds, integrator, view managers, warehouse, recovery.

One duty: to carry messages between real sources, the protocols and the warehouse, in the right order.
It must not know how a protocol decides.
"""
