# Two commands are all a new machine needs: `make demo` and `make test`. Each sets itself up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REAL_HOST := .cache/real-host
SEEDS := 2000
CLAUDE_VERSION := 2.1.332
QWEN := .cache/qwen-code
QWEN_VERSION := 0.24.4
CLAUDE := $(CURDIR)/$(REAL_HOST)/node_modules/@anthropic-ai/claude-code-$(shell uname -s | tr A-Z a-z)-$(shell uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')/claude

.PHONY: demo test quick simulate slow real-host check bench compare cases diagrams wheel pins clean

demo: $(VENV)/run.ready  ## a whole night in a minute, on a virtual clock; needs no agent program
	@$(BIN)/python -m stopwarden demo

test: check quick simulate slow  ## everything: style, types, layers, quick tests, the simulation, slow tests, the real host
	@if [ -n "$$CI" ] || { command -v npm && command -v tmux; } >/dev/null 2>&1; then $(MAKE) real-host; \
	else echo "NOT RUN: the tests with the real Claude Code, which need npm and tmux. Then: make real-host"; fi

quick: $(VENV)/dev.ready
	$(BIN)/python -m pytest -n 2 -m "not slow and not real_host"

simulate: $(VENV)/dev.ready  ## histories of the todo guard, on all cores; SEEDS=20000 is the goal (docs/roadmap.md)
	$(BIN)/python -m stopwarden simulate guard --seeds $(SEEDS)

slow: $(VENV)/dev.ready
	$(BIN)/python -m pytest -n 2 -m "slow and not real_host"

real-host: $(VENV)/dev.ready  ## Claude Code from npm, on a scripted model on loopback, in a terminal
	@sh tests/real_host/install.sh $(REAL_HOST) $(CLAUDE_VERSION)
	@sh comparison/install.sh $(QWEN) $(QWEN_VERSION) $(BIN)/python
	STOPWARDEN_TEST_CLAUDE=$(CLAUDE) STOPWARDEN_TEST_QWEN=$(CURDIR)/$(QWEN) $(BIN)/python -m pytest -m real_host tests/real_host -n 4 --maxschedchunk 1

check: $(VENV)/dev.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tests that drive the core in their own process: what they do not reach, no quick test tells of.
CORE_TESTS := $(sort $(addprefix tests/test_,$(addsuffix .py,automatic_turns away_at_stop away_check backlog \
  backlog_histories bounds chain chain_histories claim_hosts door failure_table field_reports gather guard leases \
  ledger lineage notices_in_turns periods queue ready reasons \
  reservation_rules reservations schedules session_state stop_loop two_sessions values wakes \
  what_effects_carry words_of_errors)) $(wildcard tests/test_turn*.py))

coverage: $(VENV)/dev.ready  ## every branch of core/ is taken by a quick test, or this fails
	$(BIN)/python -m coverage run -m pytest -p no:xdist -m "not slow and not real_host" $(CORE_TESTS)
	$(BIN)/python -m coverage report

mutants: $(VENV)/mutants.ready  ## thousands of small changes to core/, and which of them no test notices (hours)
	$(BIN)/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(MODULES)

bench: $(VENV)/dev.ready  ## ratios against named peers, interleaved in one run
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m bench

compare: $(VENV)/dev.ready  ## our machines and the real Qwen Code on the same scenarios; writes docs/comparison.md
	@sh comparison/install.sh $(QWEN) $(QWEN_VERSION) $(BIN)/python
	$(BIN)/python -m comparison --program $(QWEN)

faults: $(VENV)/dev.ready  ## writes docs/faults.md: faults of the machines, and what finds each
	$(BIN)/python -m tests.machine_faults

cases: $(VENV)/dev.ready  ## writes docs/cases.md from the tests' docstrings
	$(BIN)/python -m tests.cases_page

diagrams: $(VENV)/dev.ready  ## writes docs/machines.md from the tables of the core
	$(BIN)/python -m stopwarden.sim.machines_page

wheel: $(VENV)/dev.ready
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip wheel --no-deps --no-build-isolation -q -w dist .

pins: $(VENV)/dev.ready  ## renews the pinned requirement files
	for part in run agent dev node; do uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate requirements/$$part.in -o requirements/$$part.txt; done

$(VENV)/run.ready: requirements/run.txt pyproject.toml
	@sh requirements/setup.sh "$(PYTHON)" $(VENV) run && touch $@

$(VENV)/dev.ready: requirements/dev.txt pyproject.toml
	@sh requirements/setup.sh "$(PYTHON)" $(VENV) dev && touch $@ $(VENV)/run.ready

$(VENV)/mutants.ready: requirements/mutants.txt pyproject.toml
	@sh requirements/setup.sh "$(PYTHON)" $(VENV) mutants && touch $@ $(VENV)/dev.ready $(VENV)/run.ready

clean:
	rm -rf $(VENV) .cache mutants build dist
