# Two commands on a fresh machine: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-slow lint types unit docs wheels-for-gpu clean

help:            ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[plots]'
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed   ## install, then train, evaluate and question the shipped graph
	$(BIN)/golde demo
	@echo 'golde is in $(BIN); to call it by its name: . $(BIN)/activate'

test: lint types unit      ## install, then lint, type-check and test (at most 10 minutes on 2 cores)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev   ## in two processes of one thread each
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

$(VENV)/.installed-slow: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev,notebook,peers,fuzz,browser]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-dev

test-slow: $(VENV)/.installed-slow   ## kills, several processes, seeds, the notebook, PyKEEN and PyG
	$(BIN)/python -m pytest -m slow

$(VENV)/.installed-docs: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.installed-docs   ## build the documentation into site/, without network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo built site/index.html

wheels-for-gpu: $(BIN)/python   ## unpack what a GPU machine without network may lack (Python 3.12)
	$(PIP) --no-deps --upgrade --target .carry/site --python-version 3.12 --only-binary=:all: \
	  annotated-doc annotated-types hypothesis mpmath pydantic pydantic-core==2.50.4 \
	  pyoxigraph sortedcontainers tomli-w typing-extensions typing-inspection

PYKEEN := .venv-pykeen

$(PYKEEN)/.installed: constraints.txt
	$(PYTHON) -m venv $(PYKEEN)
	$(PYKEEN)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  torch pykeen==1.11.1
	@touch $@

.PHONY: bench-pykeen
bench-pykeen: $(VENV)/.installed $(PYKEEN)/.installed   ## speed beside PyKEEN (graphs: GOLDE_DATA)
	$(BIN)/python benchmarks/pykeen_speed.py --pykeen $(PYKEEN)/bin/python \
	  --out results/cpu_speed.json

clean:           ## remove what was built
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache
