# What a disk does to a warehouse, and users of the sources to a run: docs/warehouse.md tells what is promised.

FLIPS ?= 10000

.PHONY: rot
rot: install mariadb ## Bits, files, forged messages, hostile names and values: every read is right or fails by name (SECONDS=600 SEED=7)
	PYTHONPATH=tests $(BIN)/python -m chaos.rot --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --json build/rot.json

.PHONY: rot-flips
rot-flips: install ## Single bits over all files of a warehouse (FLIPS=10000, about half an hour)
	PYTHONPATH=tests $(BIN)/python -m chaos.rot --turns $(FLIPS) --only flip $(if $(SEED),--seed $(SEED)) --json build/rot-flips.json
