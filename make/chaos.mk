# Faults, wrong variants and load: docs/reliability.md tells what is promised and has the figures.

SECONDS ?= 180
MINUTES ?= 30
RATE ?= 500
CHAOS := PYTHONPATH=tests $(BIN)/python -m

.PHONY: chaos
chaos: install mariadb ## Seeded faults at three real databases, every state checked (SECONDS=1200 SEED=7; 1000 or more go into the docs)
	$(CHAOS) chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(shell test $(SECONDS) -ge 1000 && echo long),--bulk-rows 1000000 --document docs/reliability.md) \
	  --json build/chaos.json

# Each with the fault that it can't bear; it must be found out.
.PHONY: chaos-wrong
chaos-wrong: install mariadb ## Runs that are built wrong on purpose, each caught by the storm (about 15 minutes)
	@mkdir -p build; for each in acknowledge-before-commit=kill-at-point ledger-before-tables=kill-at-point \
	  one-way-compensation=kill-run ignore-restart-positions=kill-run \
	  batch-under-last-number=traffic held-back=traffic one-state-early=traffic torn-transactions=traffic; do \
	  echo "== $$each"; \
	  if $(CHAOS) chaos --seconds 240 --seed 1 --variant $${each%=*} --only $${each#*=} > build/chaos-wrong.log 2>&1; \
	  then cat build/chaos-wrong.log; echo "NOT CAUGHT: $$each"; exit 1; \
	  else grep -m1 VIOLATION build/chaos-wrong.log || { cat build/chaos-wrong.log; exit 1; }; fi; done

.PHONY: soak-load
soak-load: install mariadb ## A live run under steady load: are memory and lag flat? (MINUTES=30 RATE=500)
	$(CHAOS) chaos.load --minutes $(MINUTES) --rate $(RATE) --json build/soak-load.json --document docs/reliability.md

.PHONY: soak-simulated
soak-simulated: install ## 24 hours of simulated operation by seeds, every state checked
	$(CHAOS) chaos.simulated --json build/soak-simulated.json --document docs/reliability.md
