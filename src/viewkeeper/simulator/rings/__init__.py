"""Rings, simulated: machines at the sources, tokens on their way, and the invariants of the proof.

One duty: the world in which the ring protocols run, for its costs and for every interleaving. Begin with
`world`; `run` goes from a seed to a verdict.
"""
