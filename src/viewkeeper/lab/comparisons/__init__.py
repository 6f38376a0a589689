"""Comparisons: figures of the papers, measured in runs, and drawn.

| | |
|---|---|
| `comparing`, `section` | ``lab compare``, and what each of its sections must say |
| `compare_sweep`, `compare_rings`, `compare_medwrap`, `compare_merging` | a section for each paper |
| `plots` | the same as lines that a page draws, and how far behind a reader's view is |
"""
