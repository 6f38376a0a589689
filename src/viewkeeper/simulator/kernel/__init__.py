"""What every simulated world is made of.

One duty: nodes that send each other messages, one thing at a time, and a choice of what happens next. It knows
no protocol and no message: a world has its nodes, a table of its messages, and judges of its own.

| | |
|---|---|
| `world` | nodes, channels, the table of messages; what could happen, and making it happen |
| `scheduling` | a seed chooses; a run until nothing can happen, and then all must be at rest |
| `exploration` | every order, each different world once |
| `journal` | what happened, for people |
"""
