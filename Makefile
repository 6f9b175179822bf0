# Two commands that work on a machine with only Python and make:
#   make demo    train MobileNetV2 within a memory budget, and see the plain step fail there
#   make test    lint, import rules, types, tests
# and three more:
#   make docs      the pages as a site, in docs/site
#   make paper     the paper's tables and figures, two hours or more; goes on where it was stopped
#   make versions  the wheel in empty environments, with the oldest, the newest and the next TensorFlow

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test paper docs versions lint types tests clean

demo: $(VENV)/installed
	$(BIN)/checkmate-tf demo

test: lint types tests

paper: $(VENV)/installed
	$(BIN)/python -m experiments.paper

docs: $(VENV)/installed
	$(BIN)/python -m sphinx -W -q -b html docs docs/site

versions: $(VENV)/installed
	$(BIN)/nox

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(VENV)/installed
	$(BIN)/mypy

tests: $(VENV)/installed
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --durations 20

$(VENV)/installed: setup.py pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev,demo]'
	touch $@

clean:
	rm -rf $(VENV) .nox build dist *.egg-info
