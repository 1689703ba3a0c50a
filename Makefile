# Everything sets itself up in .venv; a fresh machine needs Python 3.10+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Data sets, where they lie beside the checkout; tests that need them are skipped otherwise.
ifneq ($(wildcard ../shared/data),)
export PNUAUC_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-engines lint types layers unit coverage docs lowest mutants attack dist clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/pnuauc demo

test: lint types layers unit docs

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

unit: $(STAMP)
	$(ONE) $(BIN)/python $(PYTEST) --cov --cov-report=term:skip-covered

# Real clusters and sessions, workers and executors killed: some minutes. Spark needs Java 17.
test-engines: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[dev,spark]"
	PNUAUC_ENGINES=1 $(ONE) $(BIN)/python -m pytest -q tests/test_dask.py tests/test_spark.py

coverage: $(STAMP)
	$(ONE) $(BIN)/python $(PYTEST) --cov --cov-report=term-missing:skip-covered --cov-report=html:build/coverage

# Strict: a broken link or an unknown reference fails. Nothing is fetched.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

# The lowest versions of pyproject.toml, in an environment of their own.
lowest:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip tomli
	.venv-lowest/bin/python tools/lowest.py > .venv-lowest/pins.txt
	.venv-lowest/bin/python -m pip install --quiet --editable ".[dev]" --constraint .venv-lowest/pins.txt
	$(ONE) .venv-lowest/bin/python $(PYTEST)

# A million fuzzed files, faults, kills and extreme numbers: two hours; resumes. ARGS="--minutes 5" for less.
attack: $(STAMP)
	$(ONE) $(BIN)/python -m attack $(ARGS)

# Would the tests notice a wrong line? Takes an hour; resumes. ARGS="metrics --seed 7 --sample 10" for less.
mutants: $(STAMP)
	$(BIN)/python tools/mutants.py $(ARGS)

# The wheel runs the demo and the source distribution its own tests, each in an empty environment.
dist: $(STAMP)
	rm -rf dist build/dist
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/dist/wheel
	build/dist/wheel/bin/pip install --quiet "$$(ls dist/*.whl)[cli]"
	cd build/dist && wheel/bin/pnuauc demo
	tar -xzf dist/*.tar.gz -C build/dist
	cd build/dist/pnuauc-* && $(PYTHON) -m venv .venv && .venv/bin/pip install --quiet --editable ".[dev]" \
	  && $(ONE) .venv/bin/python $(PYTEST)

clean:
	rm -rf $(VENV) .venv-lowest build dist .mypy_cache .ruff_cache .hypothesis .coverage
