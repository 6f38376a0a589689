"""Which names and addresses can only mean this machine. Knows nothing else of the package."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a name or an address can only mean this machine. A name that has to be looked up can not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def names_this_machine(header: str) -> bool:
    """Whether a request's ``Host`` is one of this machine's own names.

    A name that somebody else points to this machine must not open what listens here (DNS rebinding).
    """
    if set(header) & set("@/?#\\"):
        return False
    try:
        return is_loopback(urlsplit(f"//{header}").hostname or "")
    except ValueError:
        return False
