# What takes longer than a pull request may wait.

SOAK_VIEWS ?= 3000

.PHONY: soak
soak: install ## Thousands of random rich views against SQLite (SOAK_VIEWS=3000)
	VIEWKEEPER_RICH_VIEWS=$(SOAK_VIEWS) $(BIN)/python -m pytest -n 2 tests/simulation/test_rich_views.py

.PHONY: soak-live
soak-live: install ## 30 random views on three real databases, 200 transactions, every state checked
	VIEWKEEPER_LIVE_VIEWS=30 VIEWKEEPER_LIVE_TRANSACTIONS=200 \
	$(BIN)/python -m pytest -n 0 -s tests/live/pipeline/test_random_views.py

SEEDS ?= 10000

.PHONY: soak-engine
soak-engine: install ## Seeded worlds around the engine, every state judged (SEEDS=10000, about 10 minutes on two cores)
	PYTHONPATH=tests $(BIN)/python -m simulation.engine_soak --seeds $(SEEDS) --json build/soak-engine.json
