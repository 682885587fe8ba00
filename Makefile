# What people do daily. Everything happens in .venv; nothing else on the machine is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install constraints demo up metastore test test-changed soak soak-all newest lint format reference docs bench clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(INSTALLED) ## Create .venv and install the package with its demo and developer extras, in the tested versions

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Error: Python 3.11 or newer is needed; say which one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Error: $(PYTHON) cannot create a virtual environment; install its venv package (Debian: python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV) (a few minutes the first time) ..."
	@{ $(BIN)/python -m pip install --disable-pip-version-check --upgrade pip wheel && \
	   $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'; } > $(VENV)/install.log 2>&1 || \
	  { tail -20 $(VENV)/install.log >&2; echo "Error: pip could not install the package; all it said is in $(VENV)/install.log" >&2; exit 1; }
	@# The commands of dagster read .env; `dagster job backfill` wants this one, as an absolute path.
	@grep -qs '^DAGSTER_HOME=' .env || echo "DAGSTER_HOME=$(CURDIR)" >> .env
	@touch $@

constraints: $(INSTALLED) ## Renew constraints.txt: the newest versions of today that pyproject.toml allows (first: make newest)
	@$(BIN)/uv pip compile --quiet --universal --upgrade --all-extras --no-header --no-annotate \
	  pyproject.toml --output-file constraints.txt
	@git diff --stat -- constraints.txt

demo: $(INSTALLED) ## Land real flights, run the demo pipeline headless, show what was produced
	@$(BIN)/python -m examples.flights demo

up: $(INSTALLED) ## Show 2013 in time lapse: Dagster, flights that land, Spark (PORT=3000, CLOCK=2013-03-01T00:00Z@60x)
	@$(if $(CLOCK),FALCON_CLOCK=$(CLOCK)) $(BIN)/python -m examples.flights up --port $(or $(PORT),3000)

metastore: $(INSTALLED) ## Serve a Hive Metastore to try tables with, on this machine, until Ctrl-C (PORT=9083)
	@$(BIN)/python -m examples.tables.metastore .falcon/metastore $(or $(PORT),9083)

test: $(INSTALLED) ## Run the tests, but for those of `make soak`
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/pytest -m "not soak"

test-changed: $(INSTALLED) ## Run the tests, but for those of `make soak`, that what changed since SINCE can reach (SINCE=main)
	@$(BIN)/falcon doctor --only java --only home --only space
	@$(BIN)/python -m tests.changed $(or $(SINCE),main)

soak: $(INSTALLED) ## Kill, starve and simulate for half an hour: the share of these tests whose turn it is with this commit
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/pytest -m "soak or hypothesis" --hypothesis-profile=thorough --rotate 3

soak-all: $(INSTALLED) ## All of these tests (SEEDS="1 2 3": more simulated weeks)
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/pytest -m "soak or hypothesis" --hypothesis-profile=thorough
	@set -e; for seed in $(SEEDS); do SIMULATION_SEED=$$seed $(BIN)/pytest -m seeded; done

newest: $(INSTALLED) ## Run tests with the newest releases that pyproject.toml allows, and say which are newer (TESTS=tests)
	@$(BIN)/python -m tests.newest $(or $(TESTS),tests)

lint: $(INSTALLED) ## Check style, layering and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.house

format: $(INSTALLED) ## Fix what the formatter and the linter can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(INSTALLED) ## Write the tables and commands of the documentation anew, from the models and the commands
	@$(BIN)/python docs/generated.py

docs: $(INSTALLED) ## Build the documentation into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(INSTALLED) ## Run the benchmarks; they print ratios
	@$(BIN)/falcon doctor --only java --only home --only space
	$(BIN)/python -m benchmarks

clean: ## Remove what was installed and produced
	@if [ -x $(BIN)/falcon ]; then $(BIN)/falcon spark stop; fi
	rm -rf $(VENV) .venv-newest .falcon .tmp_dagster_home_* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf *.egg-info build dist site spark-warehouse metastore_db derby.log artifacts
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@rmdir logs .logs_queue 2>/dev/null || true  # Dagster makes them beside dagster.yaml, and leaves them empty
	@# What else is in .env is not ours.
	@if [ -f .env ]; then grep -v '^DAGSTER_HOME=$(CURDIR)$$' .env > .env.rest || true; \
	  if [ -s .env.rest ]; then mv .env.rest .env; else rm -f .env .env.rest; fi; fi
