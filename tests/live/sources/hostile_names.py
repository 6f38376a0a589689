"""Names as somebody would choose them who means harm."""

from __future__ import annotations

# An owner may give such names, or let others give them; scripts with them are run by superusers.
HOSTILE = [
    'quo"te', "apos'trophe", "back`tick", "back\\slash", "semi; DROP TABLE canary; --",
    "'; DROP TABLE canary; --", '"; DROP TABLE canary; --', "`; DROP TABLE canary; -- x",
    "/* comment", "*/ DROP TABLE canary /*", "-- dash", "$do$; DROP TABLE canary; $do$",
    "$vk$", "$$ x $$", "%s %(a)s {0} {name}", "new\nline; DROP TABLE canary;", "tab\there", "naïve 漢字",
    "SELECT", "?", ":name", "$1", "é" * 25, "x" * 63,
]  # fmt: skip
