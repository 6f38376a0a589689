"""View managers at work: who keeps a view from job to job, each in its own thread.

One duty: to give a protocol's pure machine what it asks for, and to tell what it found. Begin with `live`,
what a manager is, and `manager_factory`, which says who keeps which view.

| | |
|---|---|
| `live`, `threads` | a manager, the one of batched SWEEP; its thread, and several that take turns |
| `manager_factory` | the manager that a view's text asks for |
| `protocol`, `ring`, `medwrap`, `recompute`, `buffering` | the other protocols; what they share is that they answer for a batch at its end |
"""
