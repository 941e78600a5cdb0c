# One verb each; every verb first sets up what it needs, and does nothing that is done already.
# Needed beforehand: Python >= 3.11 with venv, cargo, make, and a C linker. Root is not needed.
.DEFAULT_GOAL := help
.PHONY: help demo dev wheel test test-all test-rust test-python test-vm proofs \
        lint bench fuzz fuzz-smoke sim smb mutants docs
.PHONY: pins clean
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of programs. Without stored bytecode each compiles its modules anew, 1 to 4 s.
export PYTHONDONTWRITEBYTECODE :=
STEP := @packaging/step

RUST_FILES := $(shell find crates -name '*.rs' -not -path 'crates/sim/*' -not -path '*/tests/*') \
              $(wildcard crates/*/Cargo.toml) Cargo.toml Cargo.lock pyproject.toml
SECONDS ?= 60
SEED ?=
RUNS ?= 10000
QUICK_RUNS := 8

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.core ## a virtual SAN: default settings against jumbo frames, small windows, one path; and a report
	@$(BIN)/linerate demo

dev: $(VENV)/.core $(VENV)/.dev ## the tool (.venv/bin/linerate) and everything that tests and lints need

test: ## the quick tests, under 8 minutes: Rust with few seeds, then Python without those marked long
	@LINERATE_SIM_RUNS=$(QUICK_RUNS) PROPTEST_CASES=64 LINERATE_NEIGHBOUR_SECONDS=0.7 LINERATE_QUICK=1 \
	 $(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-python

test-all: ## every test
	@$(MAKE) --no-print-directory test-rust
	@$(MAKE) --no-print-directory test-python ARGS="--all $(ARGS)"

test-rust:
	@echo "== cargo test"
	@$(PYTHON) -m tests.rust

test-python: dev
	@echo "== pytest"
	$(BIN)/python -m tests $(ARGS)

test-vm: dev ## tests with a virtual machine as a stranger's host (root, Debian; sets up QEMU and an image, or says why not)
	@$(BIN)/python -m tests.vm $(ARGS)

proofs: dev ## searches in the virtual SAN that take minutes of a machine that does nothing else
	$(BIN)/python -m pytest -m proof -rs $(ARGS)

lint: dev ## formatting, types, stubs, clippy, tidy: nothing is changed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	cargo fmt --check
	packaging/at-once "$(BIN)/mypy --strict && $(BIN)/python -m mypy.stubtest linerate._core --concise \
	    && $(BIN)/python -m pytest -q tests/tidy" \
	  "cargo clippy --locked --workspace --all-targets -- -D warnings"
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check licenses bans sources; \
	 else echo "cargo-deny is not installed: licences not checked"; fi

bench: dev ## the speed bars against raw TCP and peers, interleaved; peers that are absent are named
	cargo build --locked --release -p linerate-bench
	$(BIN)/python -m bench $(ARGS)

fuzz: ## fuzz every target for SECONDS each (needs cargo-fuzz and a nightly toolchain)
	@cargo fuzz --version >/dev/null 2>&1 \
	 || { echo "cargo-fuzz is missing: cargo install --locked cargo-fuzz --version 0.13.2" >&2; exit 1; }
	@cargo +nightly --version >/dev/null 2>&1 \
	 || { echo "a nightly toolchain is missing: rustup toolchain install nightly" >&2; exit 1; }
	@for target in $$(cargo fuzz list); do \
	   echo "== fuzz $$target for $(SECONDS) s"; \
	   mkdir -p fuzz/found/$$target; \
	   cargo +nightly fuzz run $$target fuzz/found/$$target fuzz/corpus/$$target -- \
	     -max_total_time=$(SECONDS) -print_final_stats=1 || exit 1; \
	 done

fuzz-smoke: ## the fuzz targets' bodies over random bytes on the stable toolchain, seconds
	cargo test --locked -p linerate-sim --test fuzz_smoke

sim: ## initiator, array and its disks under a virtual clock, RUNS seeds of each kind; SEED=n replays one
	LINERATE_SIM_SEED=$(SEED) LINERATE_SIM_RUNS=$(if $(SEED),,$(RUNS)) \
	cargo test --locked --release -p linerate-sim -p linerate-storage \
	  --test pair --test multipath --test model --test replica -- --nocapture

smb: RUNS := 1000
smb: ## the SMB client against Samba's server (package samba) under faults, RUNS seeds (1000); SEED=n replays one
	LINERATE_SIM_SEED=$(SEED) LINERATE_SIM_RUNS=$(if $(SEED),,$(RUNS)) \
	cargo test --locked --release -p linerate-smb --test seeds -- --nocapture

mutants: dev ## take each guard of the code away once: some test of it must fail (hours; ARGS=WORD for some)
	$(BIN)/python -m tests.mutants $(ARGS)

docs: dev ## write the tables of settings and rules, and the man page
	$(BIN)/python -m tests.settings.tables
	$(BIN)/python -m tests.advice.tables
	$(BIN)/python -m tests.install.manpage

wheel: $(VENV)/.run ## one wheel in dist/: pip install dist/linerate_san-*.whl
	$(STEP) "building a wheel (Rust, 1 to 3 minutes)" $(BIN)/maturin build --release --locked --out dist
	@ls dist/*.whl

PIN := uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 \
       --no-header --no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml --group build

pins: ## pin the Python dependencies anew (needs uv); add ARGS=--upgrade for newer ones
	$(PIN) -o requirements/run.txt $(ARGS)
	$(PIN) --group develop -o requirements/dev.txt $(ARGS)

clean: ## remove everything that was built; run directories stay
	rm -rf $(VENV) target dist python/linerate/_core*.so

# ---- stamps: a second call starts at once ----

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	 || { echo "Linerate needs Python 3.11 or later; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@packaging/step "making $(VENV)" $(PYTHON) -m venv $(VENV) \
	 || { rm -rf $(VENV); echo "no venv module: install python3-venv (Debian) and call make again" >&2; exit 1; }

PIP := $(BIN)/python -m pip install --no-compile

$(VENV)/.run: requirements/run.txt | $(VENV)/bin/python
	$(STEP) "installing Python packages into $(VENV)" $(PIP) -r $<
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(VENV)/.run
	$(STEP) "installing the packages for tests and lints" $(PIP) -r $<
	@touch $@

# The first time, packages are installed while the data plane is built.
$(VENV)/.core: $(RUST_FILES) requirements/run.txt | $(VENV)/bin/python
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.90 or later (rustup.rs)" >&2; exit 1; }
	@test -e $(VENV)/.run || packaging/step "installing maturin into $(VENV)" $(PIP) -c requirements/run.txt maturin
	$(STEP) "building the data plane (Rust, 1 to 3 minutes the first time)" packaging/at-once \
	  "$(BIN)/maturin develop --skip-install --profile local --locked" "$(MAKE) --no-print-directory $(VENV)/.run"
	$(STEP) "installing linerate into $(VENV)" $(BIN)/maturin develop --profile local --locked
	@touch $@
