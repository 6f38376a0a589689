"""The engine: what a project's groups of views do, as one pure machine.

One duty: to decide. Events come in (deliveries, cuts, computed changes, commits, the clock), actions go out (open
a cut, compute, commit, follow, report), in the order in which they must be carried out. It knows no clock, thread,
queue, socket, Arrow or Spark, and a relation's rows are opaque values. The live driver and the simulator carry out
the same actions. Begin with `machine`, a group of views; `router` has the groups, `messages` what goes in and out.

| | |
|---|---|
| `router`, `machine`, `messages`, `limits` | the groups of a project; one group; what goes in and out |
| `deliveries`, `transaction_ties`, `intake`, `integrator`, `unions` | transactions on their way in, numbered and put into batches; where groups become one |
| `group_state`, `cut_pool`, `batches`, `commits`, `evolving`, `failures`, `succession` | the parts of a group's machine, and what they have in common |
| `cuts`, `jobs`, `held_rows`, `fan_outs`, `notes` | exact cuts, batches at work and painted, what waits for whom, positions without rows |
| `view`, `scope`, `relevance`, `schema_changes`, `pending_changes`, `stored_changes` | what a group keeps, whom a transaction concerns, and what schema changes do to it |
"""
