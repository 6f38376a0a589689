# The decoders of foreign bytes under attack; a slice of it is part of `make test` (tests/fuzzing).
# MINUTES are of CPU time and for each decoder.
# What others take for MINUTES, where none were asked for, is not for decoders.
FUZZ_MINUTES = $(if $(filter command environment,$(firstword $(origin MINUTES))),$(MINUTES),10)

.PHONY: fuzz
fuzz: install ## Attack the decoders of the three databases' logs (MINUTES=10 SEED=1 each; ONLY=binlog)
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]' || echo "no atheris here: inputs are made by chance"
	for each in $(or $(ONLY),pgoutput binlog wal); do \
	  PYTHONPATH=tests $(BIN)/python -m fuzzing $$each --minutes $(FUZZ_MINUTES) --seed $(or $(SEED),1) || exit 1; done

.PHONY: fuzz-corpus
fuzz-corpus: install mariadb ## Capture the bytes of tests/corpus/wire again, from real servers
	PYTHONPATH=tests $(BIN)/python -m fuzzing.capture
