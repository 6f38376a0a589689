# The live pipeline: long versions of its tests, and what it reaches.

.PHONY: kill-run
kill-run: install ## Kill `viewkeeper run` 50 times under load, checking every state (about 15 minutes)
	VIEWKEEPER_RUN_KILLS=50 $(BIN)/python -m pytest -s -k killed tests/live/pipeline/test_kills.py

.PHONY: bench
bench: install ## Transactions per second, freshness and memory of the live pipeline (about 10 minutes)
	$(BIN)/python benchmarks/pipeline.py --json benchmarks/pipeline.json
