# Faults, wrong variants and load: docs/reliability.md tells what is promised and has the figures.

SECONDS ?= 180
MINUTES ?= 30
RATE ?= 500
CHAOS := PYTHONPATH=tests $(BIN)/python -m

.PHONY: chaos
chaos: install mariadb ## Seeded faults at three real databases, every state checked (SECONDS=1200 SEED=7)
	$(CHAOS) chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) \
	  --bulk-rows $(if $(filter 1000%,$(SECONDS)) $(shell test $(SECONDS) -ge 1000 && echo long),1000000,100000) \
	  --json build/chaos.json --document docs/reliability.md

.PHONY: soak-load
soak-load: install mariadb ## A live run under steady load: are memory and lag flat? (MINUTES=30 RATE=500)
	$(CHAOS) chaos.load --minutes $(MINUTES) --rate $(RATE) --json build/soak-load.json --document docs/reliability.md

.PHONY: soak-simulated
soak-simulated: install ## 24 hours of simulated operation by seeds, every state checked
	$(CHAOS) chaos.simulated --json build/soak-simulated.json --document docs/reliability.md
