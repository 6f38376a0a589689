"""The documentation as a static site, and the pages of it that are made from the code.

One duty: from ``docs/`` to ``build/site``. Nothing of the product imports it, and what it makes needs no
network: neither fonts nor scripts come from elsewhere.
"""
