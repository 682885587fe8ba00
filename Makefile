# What people do daily. Everything happens in .venv; nothing else on the machine is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo up metastore test soak dagster-newest lint format docs bench clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(INSTALLED) ## Create .venv and install the package with its demo and developer extras

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "Error: Python 3.10 or newer is needed; say which one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Error: $(PYTHON) cannot create a virtual environment; install its venv package (Debian: python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV) (a few minutes the first time) ..."
	@{ $(BIN)/python -m pip install --disable-pip-version-check --upgrade pip wheel && \
	   $(BIN)/python -m pip install --disable-pip-version-check -e '.[demo,dev]'; } > $(VENV)/install.log 2>&1 || \
	  { tail -20 $(VENV)/install.log >&2; echo "Error: pip could not install the package; all it said is in $(VENV)/install.log" >&2; exit 1; }
	@# The commands of dagster read .env; `dagster job backfill` wants this one, as an absolute path.
	@grep -qs '^DAGSTER_HOME=' .env || echo "DAGSTER_HOME=$(CURDIR)" >> .env
	@touch $@

demo: $(INSTALLED) ## Land real flights, run the demo pipeline headless, show what was produced
	@$(BIN)/python -m examples.flights demo

up: $(INSTALLED) ## Show 2013 in time lapse: Dagster, flights that land, Spark (PORT=3000, CLOCK=2013-03-01T00:00Z@60x)
	@$(if $(CLOCK),FALCON_CLOCK=$(CLOCK)) $(BIN)/python -m examples.flights up --port $(or $(PORT),3000)

metastore: $(INSTALLED) ## Serve a Hive Metastore to try tables with, on this machine, until Ctrl-C (PORT=9083)
	@$(BIN)/python -m examples.tables.metastore .falcon/metastore $(or $(PORT),9083)

test: $(INSTALLED) ## Run the tests, but for those of `make soak`
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/pytest -m "not soak"

soak: $(INSTALLED) ## Kill, starve and simulate for forty minutes (SEEDS="1 2 3": more simulated weeks)
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/pytest -m "soak or hypothesis" --hypothesis-profile=thorough
	@set -e; for seed in $(SEEDS); do SIMULATION_SEED=$$seed $(BIN)/pytest -m seeded; done

dagster-newest: $(INSTALLED) ## Test what we touch inside of Dagster with the newest one that pyproject.toml allows
	@$(BIN)/python -m tests.orchestration.dagster_internals.newest

lint: $(INSTALLED) ## Check style, layering and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## Mend what the formatter and the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED) ## Build the documentation into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(INSTALLED) ## Run the benchmarks; they print ratios
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/python -m benchmarks

clean: ## Remove what was installed and produced
	@if [ -x $(BIN)/falcon ]; then $(BIN)/falcon spark stop; fi
	rm -rf $(VENV) .falcon .tmp_dagster_home_* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf *.egg-info build dist site spark-warehouse metastore_db derby.log artifacts
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@rmdir logs .logs_queue 2>/dev/null || true  # Dagster makes them beside dagster.yaml, and leaves them empty
	@# What else is in .env is not ours.
	@if [ -f .env ]; then grep -v '^DAGSTER_HOME=$(CURDIR)$$' .env > .env.rest || true; \
	  if [ -s .env.rest ]; then mv .env.rest .env; else rm -f .env .env.rest; fi; fi
