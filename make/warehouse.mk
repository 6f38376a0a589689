# The warehouse: what it costs, and the long version of its kill test.

.PHONY: bench-warehouse
bench-warehouse: install ## What commits, reads and storage of the warehouse cost (about 5 minutes)
	@mkdir -p build
	$(BIN)/python benchmarks/warehouse.py --json build/bench-warehouse.json

.PHONY: kill-warehouse
kill-warehouse: install ## Kill a publishing process 100 times, checking every state (about 6 minutes)
	VIEWKEEPER_KILLS=100 $(BIN)/python -m pytest -s -k random tests/live/warehouse/test_warehouse_kills.py

.PHONY: bench-checksums
bench-checksums: install ## What checksums cost the peers' stream and a read of a million rows (about 4 minutes)
	@mkdir -p build
	$(BIN)/python benchmarks/checksums.py --json build/bench-checksums.json
