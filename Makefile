# The commands that matter: make check while you work, make test before you hand in, make demo. `make help` lists the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(STAMP) ## Create .venv and install everything into it

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Viewkeeper needs Python 3.11 or newer: make PYTHON=python3.12 install"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# Tests that start Java, a server or a browser are known by what they use: tests/outside.py. JAVA_HOME leads nowhere here, so
# that a child of a test can't find a Java either.
.PHONY: check
check: check-begins lint ## While you work: style, types, and all tests that need no Java, server or browser (about 90 seconds)
	VIEWKEEPER_CHECK=1 JAVA_HOME=/none $(BIN)/python -m pytest -n 2 --dist loadgroup $(TESTS)

.PHONY: check-begins
check-begins:
	@echo "Style and types, then the tests that need no Java, server or browser, with a slice of the seeds:"
	@echo "about 90 seconds on two quiet cores. The first time everything is installed before."

.PHONY: test
test: install mariadb chromium ## Run the tests (about 12 minutes on two quiet cores; Spark tests need Java 17 or newer)
	@echo "All tests but those that are long by nature (make test-long): about 12 minutes on two quiet cores."
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not long" $(TESTS)

.PHONY: test-long
test-long: install mariadb chromium ## Run what make test leaves out: seeds, kills, a storm, browsers (about 15 minutes)
	@echo "The tests that are long by nature: about 15 minutes on two quiet cores."
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m long $(TESTS)

.PHONY: lint
lint: install ## Style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: install ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

include make/*.mk
