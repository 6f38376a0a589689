"""Views computed again from their sources, to be compared with what the warehouse shows.

One duty: to find what is wrong in the warehouse, at little cost. Begin with `auditor`.

| | |
|---|---|
| `auditor`, `audit`, `sampling` | what is due in a run; a whole view compared; some of its keys |
"""
