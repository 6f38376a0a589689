"""Schema changes, fully concurrent with data changes (DyDa, 1999).

One duty: to decide what a change of a source's schema does to a view, to rewrite the view where that
is possible, and to bring its extent over, whatever else changes meanwhile. Pure: events in, actions
out. It must not know where data lies, nor who carries the messages.

| module | |
|---|---|
| `messages`, `changes`, `differences`, `naming` | what comes in and goes out; schema changes in the source's order; what a relation was called when |
| `knowledge`, `knowledge_file`, `preferences` | what can replace what; what a view can do without |
| `lineage`, `sameness` | what became of names that a text uses; whether two definitions are the same view |
| `mapping`, `versions` | evolution mappings, merged (Table 6); the versions of a view |
| `rewriting`, `replacing`, `quality`, `synchronization` | candidates, and the choice among them (VS) |
| `reading`, `map_va`, `adaptation` | processes that read; the six queries; the adapted extent and what it includes (VA) |
| `query_engine`, `update_log` | name mapping and local correction: the lower level |
| `relationships`, `maintenance`, `states`, `management` | concurrent update sets, and the state machine: the upper level |
| `effects` | what a change would do to every view, before it is done |
"""
