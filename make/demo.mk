# The demo: needs no server of yours and leaves nothing behind. docs/demo.md tells what is shown.

.PHONY: demo
demo: install ## Live views over three databases, a kill -9 in the middle, an audit at the end (about a minute)
	@$(BIN)/viewkeeper demo $(DEMO)
