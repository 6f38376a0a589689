"""Drives the pure core through a seeded, simulated world.

One duty: sources that change by themselves, channels that delay and reorder, and a scheduler that a
seed determines entirely. It must not know live adapters. Begin with `world` and `run`: one view, one
protocol, from a seed to a verdict.

| | |
|---|---|
| `scenario`, `generator`, `scenario_file`, `schedule` | what there is and what will happen: random, or written down |
| `world`, `source`, `choices`, `scheduler`, `scheduling` | what can happen next, and who chooses |
| `run`, `exploration`, `comparison` | one seed, every interleaving, the table of a paper |
| `journal`, `charts`, `plots`, `svg` | what happened, for people |
| `rings`, `medwrap`, `merging`, `evolution` | worlds of their own, for protocols that live in others |
| `engine` | worlds of whole groups of views: sources, feeds, cuts, kills, schema changes |
"""
