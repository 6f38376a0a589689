"""Several views, simulated: integrator, view managers, merge process and warehouse as processes.

One duty: the world in which the painting algorithms run, and the examples of their paper. Begin with
`world`; `run` goes from a seed to a verdict for each group of views.
"""
