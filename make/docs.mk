# The documentation: a static site from docs/, and the pages of it that are made from the program.

SITE = PYTHONPATH=tools $(BIN)/python -m docsite

.PHONY: docs
docs: install ## Build the documentation's site in build/site; it needs no network to be read
	$(SITE) build
	@echo "file://$(CURDIR)/build/site/index.html"

.PHONY: reference
reference: install ## Write docs/reference and docs/papers/index.md again from the program (half a minute)
	$(SITE) reference

.PHONY: decisions
decisions: install ## Write the index of the decisions from their pages
	$(SITE) decisions

.PHONY: words
words: install ## Count the retired words of docs/glossary.md again; there may be fewer, never more
	$(SITE) words

.PHONY: rewrite-docs
rewrite-docs: install ## Run the pages' commands and write their output again (read it before you commit)
	VIEWKEEPER_REWRITE_DOCS=1 $(BIN)/python -m pytest -n 0 tests/docs/test_pages.py tests/docs/test_examples.py

.PHONY: notebook
notebook: install ## Run the notebook and put its pictures into it
	VIEWKEEPER_REWRITE_DOCS=1 $(BIN)/python -m pytest -n 0 tests/docs/test_notebook.py
