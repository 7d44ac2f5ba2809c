# Each target makes the environment it needs: Python 3.11+, make and a package index suffice.
# `make PYTHON=/path/to/python ...` chooses the interpreter.

PYTHON ?=
export PYTHON

# The folders that hold Python now.
CODE := $(sort $(dir $(wildcard $(addsuffix /*.py,src/hustings tests bench examples scripts))))
DEV := .venv/bin
RUN := .venv-run/bin
BENCH := .venv-bench/bin

# One lock for all systems and Pythons, with hashes, and without the index it was made from.
UV := .venv-lock/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
      --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
UPGRADE :=

# Many tests wait for clocks and sockets, so there are more workers than cores.
WORKERS := 6

.DEFAULT_GOAL := help
.PHONY: help demo test check compiled quick soak mutants bench docs site dist venv lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv-run/ready ## watch real processes elect, lose and regain their leader
	@$(RUN)/hustings demo

test: .venv/ready .venv-apscheduler4/ready ## everything a change must pass
	@$(MAKE) --no-print-directory -j 2 check compiled
	@echo "== pytest"
	@$(DEV)/python -m pytest -n $(WORKERS) --dist=worksteal --hypothesis-profile=ci --durations=25 --durations-min=3

# Beside mypy, which uses one core: each worker would compile all tests anew, and tests of kernels
# would wait for a compiler.
compiled: .venv/ready
	@$(DEV)/python -m scripts.compile_kernels
	@$(DEV)/python -m pytest --collect-only -q > /dev/null || true

check: .venv/ready ## the static part of `make test`
	@echo "== ruff check"
	@$(DEV)/ruff check .
	@echo "== ruff format"
	@$(DEV)/ruff format --check .
	@echo "== mypy"
	@$(DEV)/mypy $(CODE)
	@echo "== import contracts"
	@$(DEV)/lint-imports

quick: .venv/ready ## ruff, mypy and the unit tests of what changed since main: BASE=HEAD~3
	@$(DEV)/ruff check .
	@$(DEV)/mypy $(CODE)
	@$(DEV)/python -m scripts.quick $(BASE)

soak: .venv/ready .venv-apscheduler4/ready ## the tests again, with many more random cases and the long ones
	@$(DEV)/python -m pytest -n 2 --hypothesis-profile=soak --timeout=3600 -m "soak or not soak"

mutants: .venv/ready ## plant bugs and see which the tests notice: PARTS="wire quorum" SHARE=0.2
	@$(DEV)/python -m scripts.mutation $(PARTS) $(if $(SHARE),--share $(SHARE)) \
		$(if $(SEED),--seed $(SEED))

bench: .venv-bench/ready ## measure against peers and write bench/RESULTS.md
	@$(BENCH)/python -m bench

docs: .venv/ready ## regenerate docs/reference and docs/coverage.md
	@$(DEV)/python -m scripts.write_reference

site: .venv/ready ## build the documentation site in build/site
	@$(DEV)/python -m scripts.build_site

dist: .venv/ready ## build the source archive and the wheel in dist/
	@$(DEV)/python -m scripts.release --build

venv: .venv/ready .venv-apscheduler4/ready ## only make the environments of the tests

.venv/ready: requirements/dev.txt pyproject.toml scripts/make_env.sh
	@scripts/make_env.sh .venv requirements/dev.txt

.venv-run/ready: requirements/run.txt pyproject.toml scripts/make_env.sh
	@scripts/make_env.sh .venv-run requirements/run.txt

.venv-bench/ready: requirements/bench.txt pyproject.toml scripts/make_env.sh
	@scripts/make_env.sh .venv-bench requirements/bench.txt

# One example needs a version that .venv cannot have.
.venv-apscheduler4/ready: requirements/apscheduler4.txt pyproject.toml scripts/make_env.sh
	@scripts/make_env.sh .venv-apscheduler4 requirements/apscheduler4.txt

.venv-lock/ready: requirements/lock.txt pyproject.toml scripts/make_env.sh
	@scripts/make_env.sh .venv-lock requirements/lock.txt

lock: .venv-lock/ready ## rewrite requirements/*.txt (UPGRADE=--upgrade raises the pins)
	@for set in run dev bench apscheduler4 lock; do \
	    echo "== requirements/$$set.txt"; \
	    $(UV) $(UPGRADE) requirements/$$set.in -o requirements/$$set.txt || exit 1; \
	done

clean: ## remove environments, caches and builds
	rm -rf .venv .venv-run .venv-bench .venv-apscheduler4 .venv-lock build dist
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
