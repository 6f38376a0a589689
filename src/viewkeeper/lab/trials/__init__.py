"""Trials: everything about a run but its seed. `choosing` finds the one that a name and options mean.

| | |
|---|---|
| `trial`, `choosing` | what all have; which one is meant |
| `asking_trial`, `medwrap_trial`, `ring_trial` | protocols that ask sources; those with wrappers; those that go round a ring |
"""
