# Schema changes: what they cost a live view. Their simulation is part of `make soak-engine`.

.PHONY: bench-evolution
bench-evolution: install ## Seconds and rows moved per schema change, beside a full reload (about 3 minutes)
	$(BIN)/python benchmarks/evolution.py
