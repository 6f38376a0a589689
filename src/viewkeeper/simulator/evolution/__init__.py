"""Schema changes, simulated: sources whose relations change while a view over them is kept.

One duty: the world in which DyDa's management runs, random histories for it, and their judgement. Begin
with `world`; `checking` judges.
"""
