"""Real database servers, started and stopped from Python, for the demo and the tests.

One duty: a private server in a temporary folder on the loopback interface, that is gone afterwards.
It must not know what runs against it. Begin with `server`, what they all share.
"""
