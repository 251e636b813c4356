# The commands of the project; CI calls the same targets. `make audit` and `make test` set up all
# they need on a fresh machine: Python 3.11 or later, a Rust toolchain and the package registries.
PYTHON ?= python3
VENV ?= .venv
OUT ?= out

BIN := $(VENV)/bin
EXTRAS := $(VENV)/extras
# No recipe below shares make's job server with cargo, which would warn that it cannot reach it.
CARGO := MAKEFLAGS= cargo
PIP := MAKEFLAGS= $(BIN)/python -m pip --disable-pip-version-check --quiet
# constraints.txt has hashes, which pip compares wherever it installs (an older pip than the one there
# takes them from requirements only). On Linux, where CI runs most, it also refuses what is not listed.
INSTALL := install $(if $(filter Linux,$(shell uname -s)),--require-hashes) --constraint constraints.txt
# Lint compiles in a folder of its own, for one folder has one lock, on which tests would wait.
LINT := CARGO_TARGET_DIR=target/lint $(CARGO)
# What machines without x86's instruction sets compile and run, in a folder of its own.
PORTABLE := RUSTFLAGS='--cfg dpcore_portable' CARGO_TARGET_DIR=target/portable $(CARGO)
# rustfmt does not follow the modules that the table of noises names.
NOISES := $(wildcard rust/mechanisms/*.rs)
SOURCES := pyproject.toml Cargo.toml Cargo.lock $(shell find rust -name '*.rs')
# pyo3 builds against this interpreter, and finds it without an activated environment.
export PYO3_PYTHON := $(abspath $(BIN)/python)
# Tests start hundreds of processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: audit test test-all setup lint format rust-test portable smoke benches python-test extras-test \
        all-python all-extras lowest search bench record-suite docs locked licences wheel \
        clean

# The main job: every published system audited, one table and one picture in $(OUT).
audit: $(VENV)/package
	$(BIN)/dpcore reproduce published-systems --out $(OUT)

# What must hold before a change lands; pytest's own summary is the last line. Tests with the marker
# `sweep` and what is slow to build wait for `make test-all`. A download and a linker leave cores idle,
# the tests without extras, on one worker per core, do not.
test:
	+$(MAKE) --jobs=2 --no-print-directory lint rust-test $(EXTRAS)/done
	+$(MAKE) --no-print-directory smoke extras-test python-test

# Every test and check, in both environments. `make test-all PART=i/n` runs one part of n: tests are
# divided by a hash of their file's name, everything else belongs to part 1.
PART ?= 1/1
test-all: $(EXTRAS)/done
ifeq ($(firstword $(subst /, ,$(PART))),1)
	+$(MAKE) --jobs=2 --no-print-directory lint portable rust-test smoke
	+$(MAKE) --no-print-directory benches docs
endif
	+$(MAKE) --no-print-directory all-extras all-python

setup: $(VENV)/dev

$(VENV)/pip: constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("dpcore needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	sed -n '/^pip==/,/hash=[^\\]*$$/p' constraints.txt > $(VENV)/requirements.txt
	$(PIP) install --requirement $(VENV)/requirements.txt
	touch $@

# What compiles the package is in the list, too: an environment that pip makes for it would not be.
$(VENV)/package: $(VENV)/pip $(SOURCES)
	$(BIN)/python -c 'import tomllib; table = tomllib.load(open("pyproject.toml", "rb")); print(*table["build-system"]["requires"], *table["project"]["dependencies"], sep="\n")' \
	    > $(VENV)/requirements.txt
	$(PIP) $(INSTALL) --requirement $(VENV)/requirements.txt
	PATH="$(abspath $(BIN)):$$PATH" $(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/dev: $(VENV)/package
	$(PIP) $(INSTALL) --group dev
	touch $@

# torch and all other optional packages, beside and not in what the tests without them run in.
$(EXTRAS)/done: $(VENV)/dev
	$(BIN)/python -m venv --clear --without-pip $(EXTRAS)
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	    > $$($(EXTRAS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth
	$(EXTRAS)/bin/python -m pip --disable-pip-version-check --quiet $(INSTALL) --group extras
	touch $@

lint: $(VENV)/dev
	$(CARGO) fmt --check -- $(NOISES)
	$(LINT) clippy --locked --all-targets --features python,rand -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(LINT) doc --locked --no-deps --quiet --features python,rand
	$(PORTABLE) clippy --locked --all-targets --features python -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/dev
	$(CARGO) fmt -- $(NOISES)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

rust-test:
	$(CARGO) test --locked --quiet --features rand

# The crate without its optional features, and what machines without x86's instruction sets run.
portable:
	$(LINT) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(LINT) doc --locked --no-deps --quiet --features rand
	$(PORTABLE) test --locked --quiet --lib --tests

# A tiny run of the main job.
smoke: $(EXTRAS)/done
	$(EXTRAS)/bin/python -m dpcore reproduce published-systems --out $(OUT)/smoke --quick --no-progress

# A tiny run of every benchmark.
benches: $(EXTRAS)/done
	$(EXTRAS)/bin/python -m pytest benches -q -o addopts= --benchmark-disable
	$(CARGO) bench --locked --quiet --features rand --bench core -- --test

python-test: $(VENV)/dev
	$(BIN)/python -m pytest -q -m "not sweep and not extras"

# With every optional package, the tests that need one: none may skip because a package is missing.
extras-test: $(EXTRAS)/done
	DPCORE_EXTRAS=1 $(EXTRAS)/bin/python -m pytest -q -m "extras and not sweep"

all-python: $(VENV)/dev
	$(BIN)/python -m pytest -q --part=$(PART)

# Whole files, so that what needs no optional package also runs beside all of them.
all-extras: $(EXTRAS)/done
	DPCORE_EXTRAS=1 $(EXTRAS)/bin/python -m pytest -q --extras-files --part=$(PART)

# The tests without extras, with the oldest versions that pyproject.toml allows. Old packages warn of
# the new ones beside them, which is no fault of ours.
LOWEST := $(VENV)/lowest
lowest: $(VENV)/dev
	$(BIN)/python -m venv --clear $(LOWEST)
	$(BIN)/python -c 'import tomllib; print(*(one.replace(">=", "==") for one in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]), sep="\n")' \
	    > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade 'pip>=25.1'
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install \
	    --constraint $(LOWEST)/constraints.txt --editable . --group dev
	$(LOWEST)/bin/python -m pytest -q -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

# What chance may find in the tests of proptest and hypothesis: other seeds at each call, of the latter
# ten times the examples.
search: $(EXTRAS)/done
	PROPTEST_RNG_SEED=$$(date +%s) $(CARGO) test --locked --quiet --features rand
	$(EXTRAS)/bin/python -m pytest -q tests -m hypothesis --hypothesis-profile=search --timeout=3600

# Criterion for the core, pytest-benchmark for the package; ratios are recorded in benches/record.
bench: $(VENV)/dev
	$(CARGO) bench --locked --features rand --bench core
	$(BIN)/python -m pytest benches -q -o addopts= --benchmark-json=$(OUT)/benchmarks.json \
	    --benchmark-columns=min,median,rounds --benchmark-sort=min
	$(BIN)/python benches/record.py $(OUT)/benchmarks.json

# CPU seconds of each stage and the slowest tests, in benches/record/suite.md.
record-suite: $(EXTRAS)/done
	$(BIN)/python benches/record_suite.py

# The site, in $(OUT)/docs: beside the optional packages, for its examples use them all.
$(EXTRAS)/docs: $(EXTRAS)/done
	$(EXTRAS)/bin/python -m pip --disable-pip-version-check --quiet $(INSTALL) --group docs
	touch $@

docs: $(EXTRAS)/docs
	$(EXTRAS)/bin/python -m sphinx --builder html --jobs 2 --quiet --fail-on-warning --keep-going \
	    --nitpicky docs $(OUT)/docs

# Versions and hashes for every system, in constraints.txt. A version there stays where it fits;
# `make locked UPGRADE='--upgrade-package ruff'` takes a newer one. uv needs Python's oldest patch level,
# too: soupsieve does not run below 3.11.5.
locked:
	$(PYTHON) -m venv --clear $(OUT)/uv
	$(OUT)/uv/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(OUT)/uv/bin/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes \
	    --no-annotate --custom-compile-command 'make locked' $(UPGRADE) --all-extras \
	    --group dev --group extras --group docs pyproject.toml --output-file constraints.txt

# The page of the licences that crates and packages state.
licences: $(VENV)/dev
	$(BIN)/python docs/licences.py

wheel: $(VENV)/dev
	MAKEFLAGS= $(BIN)/maturin build --release --locked --out dist

clean:
	rm -rf $(VENV) $(OUT) dist target
