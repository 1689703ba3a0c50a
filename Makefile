# Everything sets itself up in .venv; a fresh machine needs Python 3.10+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Data sets, where they lie beside the checkout; tests that need them are skipped otherwise.
ifneq ($(wildcard ../shared/data),)
export PNUAUC_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-all lint types layers unit coverage docs lowest mutants attack dist clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/pnuauc demo

# Quick: at most three minutes on two cores. `make test-all` runs what this leaves out.
test: lint types layers unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

# One BLAS thread per worker: two workers with two threads each would fight for two cores.
ONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg
PYTEST := -m pytest -n 2 --dist loadfile -q

QUICK := -m "not slow and not system"

unit: $(STAMP)
	$(ONE) $(BIN)/python $(PYTEST) $(QUICK)

# A build of torch without CUDA, where there is one; its tests are skipped without it.
TORCH ?= torch==2.13.0+cpu

# Statistical laws, processes, kills, real clusters and sessions (Spark needs Java 17), documentation: 20 minutes.
test-all: docs
	$(BIN)/python -m pip install --quiet --editable ".[dev,spark,pulearn,boosting]" optuna
	$(BIN)/python -m pip install --quiet "$(TORCH)" || echo "$(TORCH) is not available: its tests are skipped"
	$(ONE) $(BIN)/python $(PYTEST) tests/test_boosting.py tests/torch $(QUICK)
	PNUAUC_ENGINES=1 $(ONE) $(BIN)/python $(PYTEST) -m "slow or system"

coverage: $(STAMP)
	PNUAUC_ENGINES=1 $(ONE) $(BIN)/python $(PYTEST) --cov --cov-report=term-missing:skip-covered --cov-report=html:build/coverage

# Strict: a broken link or an unknown reference fails. Nothing is fetched.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

# The lowest versions of pyproject.toml, in an environment of their own.
lowest:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip tomli
	.venv-lowest/bin/python tools/lowest.py > .venv-lowest/pins.txt
	.venv-lowest/bin/python -m pip install --quiet --editable ".[dev]" --constraint .venv-lowest/pins.txt
	$(ONE) .venv-lowest/bin/python $(PYTEST) $(QUICK)

# A million fuzzed files, faults, kills and extreme numbers: two hours; resumes. ARGS="--minutes 5" for less.
attack: $(STAMP)
	$(ONE) $(BIN)/python -m attack $(ARGS)

# Do the tests notice a wrong line? Resumes. ARGS="--sample 150 --seed 1", ARGS="--report" for the counts.
mutants: $(STAMP)
	$(ONE) $(BIN)/python tools/mutants.py $(ARGS)

# The wheel runs the demo, the source distribution its quick tests, each in an empty environment.
dist: $(STAMP)
	rm -rf dist build/dist
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/dist/wheel
	build/dist/wheel/bin/pip install --quiet "$$(ls dist/*.whl)[cli]"
	cd build/dist && wheel/bin/pnuauc demo
	tar -xzf dist/*.tar.gz -C build/dist
	cd build/dist/pnuauc-* && $(PYTHON) -m venv .venv && .venv/bin/pip install --quiet --editable ".[dev]" \
	  && $(ONE) .venv/bin/python $(PYTEST) $(QUICK)

clean:
	rm -rf $(VENV) .venv-lowest build dist .mypy_cache .ruff_cache .hypothesis .coverage
