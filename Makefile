# The two commands of the README, make run and make test, and the developers' targets.
#
#   make run [QUICK=1]   set-up, build, install into .venv, then the demonstration (four models; table and JSON)
#   make test            the same set-up, then every C and Python test; closes with "N passed, N failed"
#   make build           set-up, build and install only
#   make lint            ruff, mypy, clang-format and the layering test
#   make sanitize        the C tests under ASan + UBSan, the threaded ones also under TSan
#   make bench           the benchmarks of bench/
#   make clean           removes the build folders (not .venv)
#
# Variables: PYTHON (python3), VENV (.venv), BUILD (build), JOBS (2), LLVM (AUTO, SYSTEM or OFF), TESTS (arguments
# for the test runner). What is up to date is not done again: a second call starts the work within seconds.
PYTHON ?= python3
VENV ?= .venv
BUILD ?= build
JOBS ?= 2
LLVM ?= AUTO
QUICK ?=
TESTS ?=

BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
SOURCES := $(shell find src include python cmake tests/c tests/CMakeLists.txt CMakeLists.txt pyproject.toml \
             -type f -not -name '*.pyc' -not -name '*.md' 2> /dev/null)
export PATH := $(abspath $(BIN)):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.PHONY: run test build lint sanitize bench clean setup tests-run
.DELETE_ON_ERROR:

run: $(STAMPS)/installed
	@$(BIN)/python -m torch_neuronx.demo $(if $(filter-out 0,$(QUICK)),--quick)

test: $(STAMPS)/installed $(STAMPS)/test
	@$(BIN)/python tools/run_tests.py --build $(BUILD) $(TESTS)

build: $(STAMPS)/installed

setup: $(STAMPS)/build $(STAMPS)/run $(STAMPS)/test

lint: $(STAMPS)/build $(STAMPS)/test
	@$(BIN)/python tools/lint.py

sanitize: $(STAMPS)/build
	@$(BIN)/python tools/sanitize.py --jobs $(JOBS)

bench: $(STAMPS)/installed
	@$(BIN)/python tools/run_bench.py --build $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-tsan dist $(STAMPS)/configured $(STAMPS)/installed

# ---- set-up: one stamp per requirement file ----------------------------------------------------------------
$(BIN)/python:
	@sh tools/check_tools.sh $(PYTHON)
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(STAMPS)/%: requirements/%.txt requirements/constraints.txt | $(BIN)/python
	@mkdir -p $(STAMPS)
	@echo "installing requirements/$*.txt (needs the network the first time)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c requirements/constraints.txt -r $<
	@touch $@

# ---- build and install: CMake and Ninja build into $(BUILD), pip installs from there ------------------------
$(STAMPS)/installed: $(SOURCES) $(STAMPS)/build $(STAMPS)/run
	@sh tools/check_tools.sh $(BIN)/python
	@sh tools/build.sh $(BUILD) $(BIN)/python $(JOBS) $(LLVM)
	@touch $@
