# MariaDB for tests and the demo: Debian's server, never run as the system's service.

.PHONY: mariadb
mariadb: ## Install MariaDB's server with apt-get, where that is allowed (its tests are skipped otherwise)
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	if command -v mariadbd >/dev/null 2>&1; then exit 0; fi; \
	if ! command -v apt-get >/dev/null 2>&1; then \
	  echo "MariaDB is missing, and there is no apt-get here: its tests will be skipped."; exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then AS=; \
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then AS="sudo -n"; \
	else echo "MariaDB is missing, and only root may install it (apt-get install mariadb-server): its tests will be skipped."; exit 0; fi; \
	echo "Installing MariaDB's server (its service is not started)"; \
	POLICY=/usr/sbin/policy-rc.d; OURS=; \
	if [ ! -e $$POLICY ]; then OURS=1; printf '#!/bin/sh\nexit 101\n' | $$AS tee $$POLICY >/dev/null; $$AS chmod +x $$POLICY; fi; \
	$$AS apt-get update -qq >/dev/null 2>&1; \
	$$AS env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends mariadb-server >/dev/null 2>&1 \
	  || echo "apt-get could not install mariadb-server: its tests will be skipped."; \
	if [ -n "$$OURS" ]; then $$AS rm -f $$POLICY; fi
