# `make demo` sets up .venv with what a user would install, the other targets with all that the work on the library needs;
# each again only when pyproject.toml or constraints.txt has changed.

PYTHON ?= python3
NUM_WORKERS ?= 2
# What `make bench` runs, and arguments for pytest or for a benchmark.
NAME ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
USABLE := $(VENV)/.usable
DEVELOPED := $(VENV)/.developed
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt

SHELL := bash
.SHELLFLAGS := -o pipefail -c

# The paper's experiments and the helpers of tests are packages beside the library, which are not installed.
export PYTHONPATH := $(CURDIR)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-arithmetic mutants check docs bench report format release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(USABLE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "streamgp needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one that is: make PYTHON=python3.12"; \
	  exit 1; }
	@echo "Setting up $(VENV). On the first run PyTorch, BoTorch and what they need are downloaded: minutes, not seconds."
	$(PYTHON) -m venv $(VENV)
	PYTHONUNBUFFERED=1 $(INSTALL) --editable . | awk '/^Collecting/ { print "  fetching " $$2; fflush() }'
	@touch $@

# Dependency groups need a newer pip than Python 3.11 brings.
$(DEVELOPED): $(USABLE)
	@echo "Adding the extras, and the tools for tests, checks, documentation and the paper."
	$(INSTALL) --quiet "pip>=25.1"
	$(INSTALL) --quiet --editable ".[ax,dask,optuna,river,serve,tables]" --group dev
	@touch $@

demo: $(USABLE) ## condition, learn two streams, optimize, and draw a picture of it all
	$(BIN)/streamgp demo

# One thread for each worker: threads that share cores make small operations many times slower.
test test-slow: export OMP_NUM_THREADS = 1
test test-slow: export MKL_NUM_THREADS = 1
# With this variable set, each worker and each process that a test starts would compile every module anew: minutes.
test test-slow: export PYTHONDONTWRITEBYTECODE =

test: $(DEVELOPED) ## run the tests; ARGS goes to pytest: make test ARGS='tests/gp -m "not slow"'
	$(BIN)/pytest -n $(NUM_WORKERS) --dist worksteal $(ARGS)

test-slow: export STREAMGP_TEST_ANNOTATIONS = all
test-slow: $(DEVELOPED) ## repeat thousands of times what the other tests do a few times: hostile problems, kills
	$(BIN)/pytest -n $(NUM_WORKERS) --dist worksteal -m thorough $(ARGS)

# Run the numerical tests as other processors would compute them: an hour, or one combination with ARGS=1.
test-arithmetic: $(DEVELOPED)
	bash .ci/arithmetic $(BIN)/pytest $(ARGS)

mutants: export OMP_NUM_THREADS = 1
mutants: export MKL_NUM_THREADS = 1
mutants: $(DEVELOPED) ## change the code at random, and print what no test notices; ARGS="--seed 7 --number 50 gp"
	$(BIN)/python tests/mutants.py $(ARGS)

check: $(DEVELOPED) ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(DEVELOPED) ## build the documentation site into docs/_build/html, without network
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(if $(NAME),$(DEVELOPED)) ## run a benchmark: make bench NAME=fit ARGS=--quick; without a name, list them
ifeq ($(NAME),)
	@awk 'FNR == 1 { sub(/^[ru]*"""/, ""); name = FILENAME; sub(/.*\//, "", name); sub(/\.py$$/, "", name); title[name] = $$0 } \
	  /^if __name__/ { printf "make bench NAME=%-20s %s\n", name, title[name] }' benchmarks/*.py
else
	$(BIN)/python benchmarks/$(NAME).py $(ARGS)
endif

report: $(DEVELOPED) ## make the page of the paper's figures from paper/results/
	$(BIN)/python -m paper report

format: $(DEVELOPED) ## format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

release: $(DEVELOPED) ## build, check and tag the version; all but the tag with ARGS=--dry
	bash .ci/release $(BIN)/python $(ARGS)

clean: ## remove .venv, caches, and what the demo and the report wrote
	rm -rf $(VENV) build dist src/*.egg-info streamgp-demo.png paper-report.html
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage
	find src tests paper benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
