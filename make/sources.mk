# The sources: the long version of their behaviour suite, and what feeds and cuts cost.

.PHONY: test-sources-long
test-sources-long: install ## 300 cuts per kind of source under concurrent writers (about 10 minutes)
	VIEWKEEPER_CUTS=300 $(BIN)/python -m pytest --durations=10 tests/live/sources

.PHONY: bench-sources
bench-sources: install ## Rows per second of each feed, and milliseconds per query at a cut
	$(BIN)/python benchmarks/sources.py --json benchmarks/sources.json

.PHONY: bench-decoding
bench-decoding: install ## PostgreSQL's single rows beside an older revision, in turns (BEFORE=4bb13f2; about 2 minutes)
	$(BIN)/python benchmarks/decoding.py $(if $(BEFORE),--before $(BEFORE))

.PHONY: bench-owners
bench-owners: install mariadb ## How long owners of the sources wait for their own DDL because of us (about 3 minutes)
	$(BIN)/python benchmarks/owners.py
