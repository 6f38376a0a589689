# The decoders of foreign bytes under attack; a slice of it is part of `make test` (tests/fuzzing).
# MINUTES are of CPU time and for each decoder.
.PHONY: fuzz
fuzz: install ## Attack the decoders of the three databases' logs (MINUTES=10 SEED=1 each; ONLY=binlog)
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]' || echo "no atheris here: inputs are made by chance"
	for each in $(or $(ONLY),pgoutput binlog wal); do \
	  PYTHONPATH=tests $(BIN)/python -m fuzzing $$each --minutes $(or $(filter-out 30,$(MINUTES)),10) --seed $(or $(SEED),1) || exit 1; done

.PHONY: fuzz-corpus
fuzz-corpus: install mariadb ## Capture the bytes of tests/corpus/wire again, from real servers
	PYTHONPATH=tests $(BIN)/python -m fuzzing.capture
