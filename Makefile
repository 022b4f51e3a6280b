# `make sweep` and `make test` set up everything they need.
PYTHON ?= python3
TORCH  ?= torch==2.13.0
STORE  ?= outputs/store
WORKERS ?= 2
BIN    := .venv/bin
READY  := .venv/.ready
CLUSTER := .venv-cluster

.PHONY: sweep demo test lint coverage test-gpu test-cluster test-kill bench-engine bench-analysis bench-ingest bench-report bench-watch clean

sweep: $(READY)  ## sweep this machine's device and write the report
	$(BIN)/python -m runner doctor --store $(STORE) || true
	@# a point that failed (exit code 2) is in the report as well, and is this target's exit code at the end
	$(BIN)/python -m runner -m +experiment=first store=$(STORE) || { code=$$?; [ $$code -eq 2 ] || exit $$code; }; \
	$(BIN)/python -m analysis crossovers --store $(STORE) && \
	$(BIN)/python -m analysis report --store $(STORE) && exit $${code:-0}

demo: $(READY)  ## the report of the H200 results in the repository; needs no GPU
	$(BIN)/python -m analysis crossovers --store docs/results/h200
	$(BIN)/python -m analysis report --store docs/results/h200 -o outputs/h200.html

test: $(READY) lint  ## every check that CI runs: tests side by side, then those that need the machine for themselves
	@code=0; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not gpu and not cluster and not alone" || code=$$?; \
	$(BIN)/python -m pytest -m alone || code=$$?; \
	exit $$code

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

coverage: $(READY)  ## how often a 95 % interval holds the truth, simulated and on kept results: about a minute
	$(BIN)/python scripts/coverage.py 2000 docs/results/h200_engine

test-gpu:  ## what needs CUDA: pytest and the runner's packages alone
	$(or $(wildcard $(BIN)/python),$(PYTHON)) -m pytest -m gpu -p no:cacheprovider \
		tests/test_gpu.py tests/test_gpu_engine.py tests/test_gpu_ladder.py tests/test_environment.py \
		tests/test_condition.py

test-kill: $(READY)  ## parent and worker killed at 30 moments each, and the sweep resumed: nine minutes
	$(BIN)/python tests/killing.py 30

bench-engine: $(READY)  ## a thousand points that do nothing, by the engine and by Hydra's basic launcher: five minutes
	$(BIN)/python scripts/bench_engine.py

bench-analysis: $(READY)  ## seconds and memory of all verdicts, crossovers and findings of 10,000 points
	$(BIN)/python scripts/bench_analysis.py

bench-ingest: $(READY)  ## MB/s and memory of the import beside other decoders, on traces made for it
	$(BIN)/python scripts/bench_ingest.py

bench-report: $(READY)  ## size of the report of 100, 1,000 and 10,000 points, seconds to make and to draw it
	$(BIN)/python scripts/bench_report.py

bench-watch: $(READY)  ## nanoseconds that a watch costs a program's step while it measures nothing
	$(BIN)/python scripts/bench_watch.py

test-cluster: $(CLUSTER)/.ready  ## sweeps as jobs of submitit, Ray and joblib, in an environment of its own
	$(CLUSTER)/bin/python -m pytest -m cluster tests/cluster

$(CLUSTER)/.ready: $(READY) scripts/setup-cluster.sh
	@TORCH="$(TORCH)" sh scripts/setup-cluster.sh
	@touch $@

$(READY): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" TORCH="$(TORCH)" sh scripts/setup.sh
	@touch $@

clean:
	rm -rf .venv $(CLUSTER) outputs/* .pytest_cache .mypy_cache .ruff_cache
