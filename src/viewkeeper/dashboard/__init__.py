"""The dashboard: a project seen in a browser, live.

One duty: to show what the ledger, a running keeper and the simulator say, and to hand a person's few
decisions on. It must not know protocol internals, and never computes a figure that another command
would tell otherwise. Everything in one message comes from one entry of the ledger, so that no
page shows a half-applied moment. Its assets are files beside this one: no build step, nothing from elsewhere.
Begin with `project_monitor`, one moment of a project, then `endpoints` and `app`.
"""
