# Two commands that work on a machine with only Python and make:
#   make demo    train MobileNetV2 within a memory budget, and see the plain step fail there
#   make test    lint, import rules, types, tests: ten minutes on two cores
# and six more:
#   make gpu       tests for GPUs: on yours, or over a stand-in for one, without a GPU
#   make test-all  the same with the slow tests, an hour
#   make docs      the pages as a site, in docs/site
#   make coverage  which lines and branches make test leaves out
#   make paper     the paper's tables and figures, two hours or more; goes on where it was stopped
#   make versions  the wheel in empty environments, with the oldest, the newest and the next TensorFlow

# A change's own tests, the slow ones among them too:
#   make test FILES=tests/solvers/graph
#   make test FILES="tests/solvers/test_api.py checkmate_tf/step.py"

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

GPU_VENV := .venv-gpu

FILES ?=
COMPILE_KERNELS := $(BIN)/python -c \
    "from solvers.local_search.chain import compile_kernels; compile_kernels()"
PYTEST := -m pytest --numprocesses auto --dist worksteal

.PHONY: demo test gpu test-all paper docs versions checked kernels lint types tests all-tests coverage clean

demo: $(VENV)/installed
	$(BIN)/checkmate-tf demo

test: checked
	$(MAKE) --no-print-directory tests

test-all: checked
	$(MAKE) --no-print-directory all-tests
	$(MAKE) --no-print-directory gpu FILES=tests/gpu

# First what there is to run on; an environment for it takes gigabytes.
gpu:
	@kind=$$($(PYTHON) -m tests.gpu.machine) && if [ -n "$$kind" ]; then \
	    $(MAKE) --no-print-directory $(GPU_VENV)/installed-$$kind && \
	    $(GPU_VENV)/bin/python -m tests.gpu $(FILES); fi

# Compiled again only if they have changed; else every worker of the tests would compile them.
checked: $(VENV)/installed
	$(MAKE) --no-print-directory --jobs 2 lint types kernels

kernels: $(VENV)/installed
	$(COMPILE_KERNELS)

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
	$(BIN)/python $(PYTEST) $(if $(FILES),$(FILES),-m "not slow")

all-tests: $(VENV)/installed
	$(BIN)/python $(PYTEST) --hypothesis-profile thorough

coverage: $(VENV)/installed
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) -m "not slow"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

$(VENV)/installed: setup.py pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev,demo]'
	$(COMPILE_KERNELS)
	touch $@

# The stand-in was made for this release; of NVIDIA's packages only XLA's ptxas and libdevice.
$(GPU_VENV)/installed-stand-in: WITH := . 'tensorflow==2.21.*' nvidia-cuda-nvcc-cu12
$(GPU_VENV)/installed-real: WITH := '.[gpu]'
$(GPU_VENV)/installed-stand-in $(GPU_VENV)/installed-real: setup.py
	$(PYTHON) -m venv $(GPU_VENV)
	$(GPU_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(GPU_VENV)/bin/python -m pip install --quiet --editable $(WITH) pytest pytest-xdist hypothesis
	touch $@

clean:
	rm -rf $(VENV) $(GPU_VENV) .nox build dist *.egg-info
