"""Schema changes: what they mean for a view, and how its extent is brought over (DyDa, 1999).

One duty: to decide what a change of a source's schema does to a view, to rewrite the view where that is possible, and to
say how its new extent comes from the old one. Pure. It must not know where data lies, nor when a change is taken: that is
the engine's (`engine.schema_barrier`), for one view as for many, simulated and live.

| module | |
|---|---|
| `changes`, `differences` | schema changes as data; which of them lead from one schema to another |
| `knowledge`, `knowledge_file`, `preferences` | what can replace what; what a view can do without |
| `lineage`, `sameness` | what became of names that a text uses; whether two definitions are the same view |
| `mapping` | evolution mappings, and their merging (Table 6) |
| `rewriting`, `replacing`, `quality`, `synchronization` | candidates, and the choice among them (VS) |
| `reading`, `map_va`, `adaptation` | relations at one cut; the six queries; the adapted extent (VA) |
| `effects` | what a change would do to every view, before it is done |
"""
