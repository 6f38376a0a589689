# Known vulnerabilities of what we depend on: asks a public service, so it needs a network.
.PHONY: audit-dependencies
audit-dependencies: install ## Look for known vulnerabilities of all that is installed (needs a network)
	test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && build/audit/bin/python -m pip install --quiet pip-audit; }
	$(BIN)/python -m pip freeze --exclude-editable > build/audit/installed.txt
	build/audit/bin/pip-audit --requirement build/audit/installed.txt --no-deps --disable-pip --strict
