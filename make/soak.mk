# What takes longer than a pull request may wait.

SOAK_VIEWS ?= 3000

.PHONY: soak
soak: install ## Thousands of random rich views against SQLite (SOAK_VIEWS=3000)
	VIEWKEEPER_RICH_VIEWS=$(SOAK_VIEWS) $(BIN)/python -m pytest -n 2 tests/simulation/test_rich_views.py
