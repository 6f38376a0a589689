"""``python -m viewkeeper``: the command line without its script."""

from viewkeeper.cli import main

main()
