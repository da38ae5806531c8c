# `make run` and `make test` set up whatever is missing. See CONTRIBUTING.md.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Targets set up the same .venv; make -j would only have them wait for each other's lock.
.NOTPARALLEL:

BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Arguments for the program or for pytest: make run ARGS="--port 9000", make test ARGS="-k barge"
ARGS ?=

.PHONY: help run test test-all setup setup-dev models check format bench eval soak chaos wheel clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

# The profile named in ARGS, for the models it needs.
PROFILE = $(shell sed -nE 's/.*--profile[= ]+([a-z]+).*/\1/p' <<<'$(ARGS)')

run: ## set up what is missing, then start the agent (Ctrl-C stops it)
	@scripts/setup runtime
	@scripts/setup models $(PROFILE)
	@exec $(BIN)/python scripts/foreground.py $(BIN)/voice-agent serve $(ARGS)

test: ## set up what is missing, then run every test, long trials as a seeded sample
	@scripts/setup dev
	@scripts/setup browser
	@scripts/setup models default small
	@exec $(BIN)/python -m pytest -m "not long" $(ARGS)

test-all: ## the same with the full counts
	@scripts/setup dev
	@scripts/setup browser
	@scripts/setup models default small
	@VOICE_AGENT_TEST_FULL=1 exec $(BIN)/python -m pytest $(ARGS)

setup: ## .venv with what `make run` needs
	@scripts/setup runtime

setup-dev: ## .venv with the tools for check and test, and a browser
	@scripts/setup dev
	@scripts/setup browser

models: setup ## the model files of the configured profile
	@scripts/setup models

check: ## format, lint, types
	@scripts/setup dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: ## put the format right, and what the linter can mend by itself
	@scripts/setup dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: ## a simulated caller measures the agent
	@scripts/setup runtime
	@scripts/setup models
	@exec $(BIN)/voice-agent bench $(ARGS)

eval soak chaos:
	@echo "make $@: this version has no such measurement yet; make bench and make test are there" >&2; exit 2

wheel: ## dist/*.whl, complete without the checkout
	@scripts/setup runtime
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

clean: ## remove .venv and what tools leave; model files and kept wheels stay
	rm -rf .venv .setup.lock dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find voice_agent tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
