"""The engine: what a project's groups of views do, as one pure machine.

One duty: to decide. Events come in (deliveries, cuts, computed changes, commits, the clock), actions go out (open
a cut, compute, commit, follow, report), in the order in which they must be carried out. It knows no clock, thread,
queue, socket, Arrow or Spark, and a relation's rows are opaque values. The live driver and the simulator carry out
the same actions. Begin with `machine`, a group of views; `router` has the groups, `messages` what goes in and out.
"""
