# Us beside what users would pick instead; how cost grows; a guard against getting slower.

.PHONY: bench-peers
bench-peers: install ## The same changes on Flink, Pathway, DuckDB, PostgreSQL, Spark and us (about 20 minutes; PEERS="--rounds 1 …")
	cd benchmarks && ../$(BIN)/python -m peers --document ../docs/performance.md $(PEERS)
