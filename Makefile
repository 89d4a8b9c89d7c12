# Every target sets up what it needs; nothing else has to be installed by hand on a Debian machine.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
JOBS ?= 2

.PHONY: install demo web test test-slow campaign campaign-c campaign-drivers check format bench examples lock clean

# Compiled here once, so that no start has to, wherever Python is told not to keep what it compiles.
install: $(STAMP)
	@$(PY) -m compileall -q src

$(STAMP): pyproject.toml requirements.lock tools/bootstrap.sh
	@bash tools/bootstrap.sh $(VENV) requirements.lock
	@touch $(STAMP)

demo: install
	@bash examples/demo/demo.sh $(VENV)/bin/mcveto

check: install
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

# The front end of the pages that --report writes; installs node and npm if it can.
web:
	@bash tools/web.sh

test: check
	@bash tools/web.sh --with-browser || echo "the pages are not built; their tests are skipped"
	@# What pytest compiles is kept, also where Python is told not to: else every process compiles all tests anew.
	@# Tests of one file mostly stay in one process, which then sets up what they share once.
	PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n $(JOBS) --dist worksteal -m "not slow" -rs

test-slow: install
	$(PY) -m pytest -n $(JOBS) -m slow --timeout 3600

# Random programs with known truth against every engine, for SECONDS; wrong verdicts end up in tests/regressions.
SECONDS ?= 600
campaign: install
	$(PY) tools/campaign.py --seconds $(SECONDS) --jobs $(JOBS)

# Random C, compiled for every instruction set, against native runs of every input.
campaign-c: install
	$(PY) tools/c_campaign.py --seconds $(SECONDS)

# Drivers with something changed at random, against random native runs.
campaign-drivers: install
	$(PY) tools/driver_campaign.py --seconds $(SECONDS)

format: install
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# Rebuilds the bundled example binaries; needs the cross compiler from the registry, hence not part of install.
examples: install
	$(PY) -m pip install --quiet --require-hashes --requirement requirements-examples.lock
	$(PY) tools/build_examples.py

lock:
	uv pip compile --quiet --universal --generate-hashes --group dev --no-emit-index-url --no-header pyproject.toml --output-file requirements.lock
	uv pip compile --quiet --universal --generate-hashes --group examples --no-emit-index-url --no-header --output-file requirements-examples.lock

clean:
	rm -rf web/node_modules src/mcveto/viewer/assets $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
