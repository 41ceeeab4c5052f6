# The front door. Every target that needs packages installs them first (nothing happens when they are there).
#   make train AGENT=sql ARGS="--ci"    ARGS goes to train_sql_agent.py; an agent is a folder NAME_agent/

PYTHON_BIN := .venv/bin/python
AGENT ?= sql
ALL := code,consultation,diagnosis,sql
PROGRAM = $(if $(filter all,$(AGENT)),train_agents.py --agents $(ALL),train_$(AGENT)_agent.py)
# Whose Debian packages a target needs: a folder with a debian-packages.txt.
train demo train-external: NEEDS = $(AGENT:all=code)_agent
test nightly faults bench: NEEDS = tests

.PHONY: help train demo real-model test unit nightly faults lint types imports bench fuzz train-external release-check check-install install clean

help:           ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

train: install  ## Install what is missing, train for one step on the bundled model, validate, save a checkpoint (AGENT=sql; AGENT=all)
	$(PYTHON_BIN) $(PROGRAM) $(or $(ARGS),--ci-fast)

demo: install   ## Watch it learn: evaluate, train, evaluate, with a table and a report (AGENT=sql SEED=2; MODEL=models/NAME: a real model, with a warm-up)
	$(PYTHON_BIN) -m evaluation.demo $(AGENT) $(if $(SEED),--seed $(SEED)) $(if $(MODEL),--model $(MODEL) --warm-up 192) $(ARGS)

real-model: install  ## Fetch a pretrained language model that runs on a laptop: MODEL=smollm2-135m (English, 98 MB) or qwen2.5-coder-0.5b (Chinese, 491 MB)
	$(PYTHON_BIN) -m training.real_model $(MODEL) $(ARGS)

test: install   ## Install what is missing, then lint, types, import contract and the tests: unit, system, engine
	./check.sh

unit: install   ## The unit tests: minutes; they start no engine, browser, database server or sandbox
	./check.sh unit

nightly: install  ## What `make test` leaves out, part by part: generated, trainings, faults, gpu (PART=trainings)
	./check.sh $(or $(PART),nightly)

faults: install ## Kill, freeze, cut off and starve every part of real runs, and write bench/faults.md (SCENE=path, ONLY=vLLM)
	$(PYTHON_BIN) -m bench.faults $(if $(SCENE),--scene $(SCENE)) $(if $(ONLY),--only "$(ONLY)")

lint:           ## Style only
	@./check.sh lint

types:          ## Types only
	@./check.sh types

imports:        ## Import contract only
	@./check.sh imports

fuzz: install   ## 100,000 generated statements against the guard in three dialects and the authorizer behind it (CASES=n)
	FUZZ_CASES=$(or $(CASES),100000) ./check.sh generated -- -n0 tests/tools/sql/test_fuzz.py --timeout 7200

bench: install  ## Every measurement in bench/, one line of JSON each; not agl_step, which needs an environment of its own
	@for file in $(filter-out bench/agl_step.py,$(wildcard bench/[a-z]*.py)); do $(PYTHON_BIN) -m bench.$$(basename $$file .py) || exit 1; done

train-external: install  ## Store, runner and algorithm as three processes on this machine
	AGENT=$(AGENT) bash training/external.sh

release-check: install  ## What a version must pass beyond `make test`: its wheel installed elsewhere, README's commands, documents, licences
	./check.sh release

check-install: install  ## One table: versions, ports, database, judge, model, disk and memory
	$(PYTHON_BIN) -m utils.check_install

install:        ## Make .venv and install the lock; at once when it is already there
	@./install.sh $(NEEDS)

clean:          ## Remove caches; runs/ and .venv stay
	rm -rf .pytest_cache .hypothesis .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
