# Everything sets itself up in .venv; a fresh machine needs Python 3.10+, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Data sets, where they lie beside the checkout; tests that need them are skipped otherwise.
ifneq ($(wildcard ../shared/data),)
export PNUAUC_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test lint types layers unit docs clean

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
unit: $(STAMP)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m pytest -n 2 --dist loadfile -q

# Strict: a broken link or an unknown reference fails. Nothing is fetched.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
