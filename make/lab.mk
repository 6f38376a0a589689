# The lab: protocols in a simulated world. `viewkeeper lab --help` has everything; docs/lab.md explains.

.PHONY: rewrite-scenarios
rewrite-scenarios: install ## Write the transcripts in tests/scenarios again (read them before you commit)
	$(BIN)/python -m pytest tests/scenarios --rewrite-scenarios
