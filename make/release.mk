# A release: CONTRIBUTING.md has the steps around it. The version stands in src/viewkeeper/__init__.py alone.

.PHONY: release
release: install ## Build wheel and source archive into dist/ and try the wheel in a new environment (needs a package index)
	$(BIN)/python tools/release.py
