# Us beside what users would pick instead; how cost grows; a guard against getting slower.

.PHONY: bench-peers
bench-peers: install ## The same changes on Flink, Pathway, DuckDB, PostgreSQL, Spark and us (about 20 minutes; PEERS="--rounds 1 …")
	cd benchmarks && ../$(BIN)/python -m peers --document ../docs/performance.md $(PEERS)

.PHONY: bench-scaling
bench-scaling: install ## Initial load on one and two workers of a cluster; cost by sources, views, base and batch (about 10 minutes)
	$(BIN)/python benchmarks/scaling.py --document docs/scaling.md $(SCALING)

.PHONY: bench-check
bench-check: install ## Fail when we have become slower by more than a third: ratios within one run (about 2 minutes)
	$(BIN)/python benchmarks/check.py

.PHONY: bench-baseline
bench-baseline: install ## Measure what bench-check compares with, and write it down
	$(BIN)/python benchmarks/check.py --record

.PHONY: bench-former
bench-former: install ## The peers' workload on us and on an older revision, alternately (BEFORE=REVISION; about 10 minutes)
	$(BIN)/python benchmarks/former.py --before $(BEFORE) --json build/former.json
