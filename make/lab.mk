# The lab: protocols in a simulated world. `viewkeeper lab --help` has everything; docs/lab.md explains.

.PHONY: demo
demo: install ## Three updates at once: SWEEP keeps the view right, naive maintenance does not
	@$(BIN)/viewkeeper lab show sweep-figure-5-concurrent
	@printf '\n%s\n%s\n\n' \
	  'Nothing stood still, and yet every state above is the view at some moment. Now the same' \
	  'updates in the same order, maintained without correction:'
	@$(BIN)/viewkeeper lab show naive-anomaly
	@printf '\n%s\n%s\n%s\n%s\n' 'Go on with:' \
	  '  $(BIN)/viewkeeper lab compare                            what each protocol costs, measured' \
	  '  $(BIN)/viewkeeper lab explore --protocol sweep           every interleaving of a small case' \
	  '  $(BIN)/viewkeeper lab swarm --protocol sweep --seeds 1..500 --inversions --no-fifo'

.PHONY: rewrite-scenarios
rewrite-scenarios: install ## Write the transcripts in tests/scenarios anew (read them before you commit)
	$(BIN)/python -m pytest tests/scenarios --rewrite-scenarios
