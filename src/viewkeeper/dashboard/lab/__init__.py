"""The lab page's runs: the simulator's scenarios and trials, step by step, as JSON.

One duty: to let the simulator run and to tell what it did so that a page can step through it. It knows
no protocol; verdicts are the checker's.
"""
