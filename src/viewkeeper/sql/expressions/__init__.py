"""Scalar expressions: syntax to the algebra's trees, typed.

| | |
|---|---|
| `translation`, `calls`, `intervals` | operators, functions, dates plus intervals |
| `scope`, `columns` | which names can be seen, and what a name means |
| `constants`, `literals` | values that stand in the text |
"""
