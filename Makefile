PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: tests that start servers mostly wait.
WORKERS = $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

export FLWR_TELEMETRY_ENABLED = 0
export FLWR_DISABLE_UPDATE_CHECK = 1
export RAY_USAGE_STATS_ENABLED = 0
export NO_MKDOCS_2_WARNING = 1

.DEFAULT_GOAL := help
.PHONY: help install demo test test-browser test-deploy docs build notebooks fuzz check format bench bench-simulation bench-rounds bench-flower bench-grids bench-audit bench-attackers bench-scale bench-growth contest reproduction clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | column -t -s '|'

install: $(STAMP) ## Install everything into .venv

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"fedra needs Python 3.11 to 3.13, this is {v[0]}.{v[1]}; set PYTHON=python3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25,<27"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all,bench,dev,docs]"
	@touch $@

demo: $(STAMP) ## Show the main job on embedded data
	$(BIN)/python examples/one_liar.py
	$(BIN)/fedra demo

test: $(STAMP) ## Run the tests
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-browser: $(STAMP) ## Click through a report in Chromium, installed from Debian where apt is there
	@command -v chromium > /dev/null || { command -v apt-get > /dev/null && \
		$(SUDO) apt-get update -qq && $(SUDO) apt-get install -qq -y --no-install-recommends chromium > /dev/null; } || \
		echo "chromium is not here and could not be installed; the browser tests are skipped"
	FEDRA_REQUIRE_BROWSER=$$(command -v chromium > /dev/null && echo 1) $(BIN)/python -m pytest -q -m browser -rs

test-deploy: $(STAMP) ## Run secure deployments with failures, minutes long
	$(BIN)/python -m pytest -q -m slow_deployment

docs: $(STAMP) ## Build the site into build/site; a warning or a link that leads nowhere is an error
	$(BIN)/mkdocs build

build: $(STAMP) ## Build wheel and source archive into dist/, and try the wheel in an environment of its own
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python .ci/wheel.py

notebooks: $(STAMP) ## Run the notebooks and keep what they print
	$(BIN)/python docs/_site/notebooks.py

fuzz: $(STAMP) ## Send 100,000 mutated replies to each strategy; COUNT=, SEED= choose others
	$(BIN)/python -m tests.security.fuzz --count $(or $(COUNT),100000) --seed $(or $(SEED),0)

check: $(STAMP) ## Lint, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## Compare kernels and rules with peers; writes benchmarks/results
	$(BIN)/python -m pip install --quiet --no-deps byzfl==0.0.11
	$(BIN)/python benchmarks/kernels.py

bench-simulation: $(STAMP) ## Compare the simulation with its peers
	$(BIN)/python benchmarks/simulation/peers.py

bench-rounds: $(STAMP) ## Time rounds with two threads and one; OPTIONS="--before REV" names the revision to compare with
	$(BIN)/python benchmarks/simulation/revisions.py $(OPTIONS)

bench-grids: $(STAMP) ## Time a grid with one and two workers, and the report of results/
	$(BIN)/python benchmarks/grids.py

bench-audit: $(STAMP) ## Time the page of an audit trail at two sizes
	$(BIN)/python benchmarks/audit.py

bench-attackers: $(STAMP) ## Measure what attackers get of a round under each rule
	$(BIN)/python benchmarks/attackers.py

bench-scale: $(STAMP) ## Aggregate files against reading them; OPTIONS="--dimension 4e8 --fedra-only" writes 16 GB
	$(BIN)/python benchmarks/scale.py $(OPTIONS)

bench-growth: $(STAMP) ## Time and memory as clients and values grow, large rounds, Ray; draws the figure of docs/scale.md
	$(BIN)/python benchmarks/growth.py $(OPTIONS)

contest: $(STAMP) ## Hold the contest of all rules and write results/contest; hours, and it goes on where it stopped
	$(BIN)/fedra contest --known results/contest --out runs/contest --no-report
	$(BIN)/fedra contest --broken --known results/contest --out runs/contest --no-report
	$(BIN)/fedra grid benchmarks/study-search.toml --known results/contest --out runs/contest
	$(BIN)/fedra report runs/contest --compact results/contest --add
	$(BIN)/fedra contest --settings huffpost-iid --rules fedavg,multi-krum,centered-clipping,fedra-evidence,concord \
		--known results/contest-validation --out runs/contest-validation --no-report
	$(BIN)/fedra report runs/contest-validation --compact results/contest-validation --add

reproduction: $(STAMP) ## Put the tables of results/ into README and docs
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/contest.py
	$(BIN)/python benchmarks/silos.py
	$(BIN)/python benchmarks/federations.py

bench-flower: $(STAMP) ## Compare the Flower strategies with Flower's own
	$(BIN)/python benchmarks/flower.py

clean: ## Remove what was built
	rm -rf $(VENV) .venv-bench build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
