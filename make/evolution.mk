# Schema changes: what they cost a live view, and the long version of their simulation.

.PHONY: bench-evolution
bench-evolution: install ## Seconds and rows moved per schema change, beside a full reload (about 3 minutes)
	$(BIN)/python benchmarks/evolution.py

.PHONY: soak-evolution
soak-evolution: install ## 2,000 seeds of interleaved data and schema changes (about 10 minutes)
	VIEWKEEPER_EVOLUTION_SEEDS=2000 $(BIN)/python -m pytest tests/simulation/test_evolution.py -n 2
