# Every target sets up .venv by itself on first use, and again only when
# pyproject.toml or constraints.txt has changed.

PYTHON ?= python3
NUM_WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# The paper's experiments are a package beside the library, which is not installed.
export PYTHONPATH := $(CURDIR)

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-slow test-arithmetic mutants check docs format report wheel bench bench-sites bench-fit bench-kg bench-steps bench-streams bench-optimizers bench-defaults bench-active clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "streamgp needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one that is: make PYTHON=python3.12"; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

demo: $(INSTALLED) ## condition, learn two streams, optimize, and draw a picture of it all
	$(BIN)/streamgp demo

# One thread for each worker: threads that share cores make small operations many times slower.
test test-fast test-slow: export OMP_NUM_THREADS = 1
test test-fast test-slow: export MKL_NUM_THREADS = 1
# With this variable set, each worker and each process that a test starts would compile every module anew: minutes.
test test-fast test-slow: export PYTHONDONTWRITEBYTECODE =

test: $(INSTALLED) ## run all tests
	$(BIN)/pytest -n $(NUM_WORKERS) --dist worksteal

test-fast: $(INSTALLED) ## run the tests that take less than a second each
	$(BIN)/pytest -n $(NUM_WORKERS) --dist worksteal -m "not slow"

test-slow: export STREAMGP_TEST_ANNOTATIONS = all
test-slow: $(INSTALLED) ## repeat thousands of times what the other tests do a few times: hostile problems, kills
	$(BIN)/pytest -n $(NUM_WORKERS) --dist worksteal -m thorough

test-arithmetic: $(INSTALLED) ## run the numerical tests as other processors would compute them; an hour, or one with ARGS=1
	bash .ci/arithmetic $(BIN)/pytest $(ARGS)

mutants: export OMP_NUM_THREADS = 1
mutants: export MKL_NUM_THREADS = 1
mutants: $(INSTALLED) ## change the code at random, and print what no test notices; ARGS="--seed 7 --number 50 gp"
	$(BIN)/python tests/mutants.py $(ARGS)

check: $(INSTALLED) ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(INSTALLED) ## build the documentation site into docs/_build/html, without network
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

wheel: $(INSTALLED) ## build the source distribution and the wheel into dist/
	$(BIN)/python -m build --no-isolation --outdir dist .

report: $(INSTALLED) ## make the page of the paper's figures from paper/results/
	$(BIN)/python -m paper report

bench: $(INSTALLED) ## time conditioning beside GPyTorch, BoTorch and bare torch
	$(BIN)/python benchmarks/fantasies.py

bench-sites: $(INSTALLED) ## streams of classes and counts beside batch fits; needs the data sets
	$(BIN)/python benchmarks/sites.py $(ARGS)

bench-fit: $(INSTALLED) ## fit beside GPyTorch and BoTorch; with ARGS=--quick in minutes
	$(BIN)/python benchmarks/fit.py $(ARGS)

bench-kg: $(INSTALLED) ## optimize knowledge gradient beside GPyTorch and BoTorch; an hour
	$(BIN)/python benchmarks/knowledge_gradient.py

bench-streams: $(INSTALLED) ## streams beside batch fits and other online learners; with ARGS=--quick in minutes
	$(BIN)/python benchmarks/streams.py $(ARGS)

bench-steps: $(INSTALLED) ## time one step of a stream beside bare torch
	$(BIN)/python benchmarks/steps.py $(ARGS)

bench-optimizers: $(INSTALLED) ## optimizers beside BoTorch and Optuna; hours, resumable
	$(BIN)/python benchmarks/optimizers.py --output benchmarks/results/optimizers.jsonl $(ARGS)

bench-defaults: $(INSTALLED) ## defaults of optimizers on thirteen problems beside BoTorch and Optuna; hours, resumable
	$(BIN)/python benchmarks/defaults.py --output benchmarks/results/defaults $(ARGS)

bench-active: $(INSTALLED) ## hotspots of a disease beside the published numbers; hours, resumable; needs the data sets
	$(BIN)/python benchmarks/active_learning.py $(ARGS)

clean: ## remove .venv, caches and what the demo wrote
	rm -rf $(VENV) build dist src/*.egg-info streamgp-demo.png paper-report.html
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests paper benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
