"""Protocols in a simulated world, judged by the checker: what ``viewkeeper lab`` and the lab page show.

One duty: to let the simulator run what a person chose, and to say what happened. It knows no protocol;
verdicts are the checker's. Begin with `running`.

| | |
|---|---|
| `trials` | what is tried: a protocol, its world, its options |
| `running`, `swarming`, `exploring` | one seed; many seeds on all processors; every interleaving |
| `several_views`, `tables`, `painting` | views merged by a painting algorithm; its table as text and as a document |
| `showing`, `playing` | a scenario as a chart, and a run as a document that a page steps through |
| `comparisons` | what protocols cost, beside what their papers say |
| `listing` | which protocols there are, and what each promises |
"""
