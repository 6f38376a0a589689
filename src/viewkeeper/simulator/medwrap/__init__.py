"""MEDWRAP, simulated: sources with several relations, a wrapper for each, and one mediator.

One duty: the world in which MEDWRAP and its rivals run, and what they cost. Begin with `world`; `run`
goes from a seed to a verdict.
"""
