# How soon a signal ends a run, whatever it is doing: docs/decisions/0140 has the figures.

.PHONY: ending
ending: install ## Seconds from SIGTERM to the end of a run that loads, joins, commits or stands still
	$(BIN)/python -m pytest -n 0 -s -q tests/live/pipeline/test_ending_soon.py
