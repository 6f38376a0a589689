"""Drives the pure core through a seeded, simulated world.

One duty: sources that change by themselves, channels that delay and reorder, and a scheduler that a
seed determines entirely. It must not know live adapters. Begin with `kernel.world`, then `world` and `run`: one
view, one protocol, from a seed to a verdict.

| | |
|---|---|
| `kernel` | nodes, channels, seeds, every order, the journal: what worlds are made of |
| `scenario`, `generator`, `scenario_file`, `schedule` | what there is and what will happen: random, or written down |
| `one_view`, `source`, `world` | a view as its readers see it; sources; the world of view managers that ask |
| `run`, `exploration`, `comparison` | one seed, every interleaving, the table of a paper |
| `charts`, `plots`, `svg` | what happened, drawn |
| `rings`, `medwrap`, `merging` | other worlds, for protocols that are more than one view manager |
| `engine` | worlds of whole groups of views: sources, feeds, cuts, kills, schema changes |
"""
