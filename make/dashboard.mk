# The dashboard: Debian's Chromium for its tests, and the pictures in docs/images that they make.

.PHONY: chromium
chromium: ## Install Chromium with apt-get, where that is allowed (its tests are skipped otherwise)
	@if command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; then exit 0; fi; \
	if ! command -v apt-get >/dev/null 2>&1; then \
	  echo "Chromium is missing, and there is no apt-get here: the browser tests will be skipped."; exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then AS=; \
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then AS="sudo -n"; \
	else echo "Chromium is missing, and only root may install it (apt-get install chromium): the browser tests will be skipped."; exit 0; fi; \
	echo "Installing Chromium for the dashboard's tests"; \
	$$AS apt-get update -qq >/dev/null 2>&1; \
	$$AS env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 \
	  || echo "apt-get could not install chromium: the browser tests will be skipped."

.PHONY: screenshots
screenshots: install chromium ## Take the pictures of docs/dashboard.md again
	mkdir -p docs/images
	VIEWKEEPER_SCREENSHOTS=docs/images $(BIN)/python -m pytest -n 0 tests/dashboard/test_pages.py tests/dashboard/test_live.py
