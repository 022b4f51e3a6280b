"""What the engine does with cards: looking, locking, sharing. Needs pytest and the runner's packages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import torch

from runner import nvml
from runner.process import WorkerProcess

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parent.parent


def start(store: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a sweep."""
    return subprocess.Popen(
        [sys.executable, "-m", "runner", "-m", f"store={store}", "measure=quick", "measure.slopes_every=0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **variables},
    )  # fmt: skip


def test_looking_puts_nothing_on_the_card() -> None:
    """A worker that has looked knows the card's UUID and environment, and NVML sees no context of it."""

    async def looked() -> tuple[str, frozenset[int], frozenset[int], int]:
        worker = WorkerProcess()
        try:
            found = await worker.ask("look", ("cuda", 0, ()))
            card = nvml.find(found.uuids[0])
            assert card is not None
            before = card.process_ids() or frozenset()
            await worker.ask("open", ("cuda", 0))
            return found.kind, before, card.process_ids() or frozenset(), worker.process.pid
        finally:
            await worker.close()

    kind, before, after, pid = asyncio.run(looked())
    if pid not in after:
        pytest.skip("NVML numbers processes by another namespace here")
    assert kind == "cuda" and pid not in before


def test_two_sweeps_never_share_a_card(tmp_path: Path) -> None:
    """While one holds the card, another fails at once with wait=false; a third waits, says for whom, and measures."""
    store = tmp_path / "store"
    first = start(store, "order=given", "hydra.sweeper.grids=[{size:64},{workload:fault,workload.how:hang,size:8}]")
    assert first.stdout is not None and first.stdout.readline().startswith("[1/2]")  # from now on it hangs
    refused = start(store, "size=32", "wait=false")
    told = refused.communicate(timeout=120)[1]
    assert refused.returncode == 1 and f"is in use by process {first.pid}" in told
    patient = start(store, "size=32")
    assert patient.stdout is not None and f"in use by process {first.pid}" in patient.stdout.readline()
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    said = patient.communicate(timeout=240)[0]
    assert (first.returncode, patient.returncode) == (143, 0) and "1 ok" in said


def test_a_card_that_torch_cannot_use_is_no_silent_cpu(tmp_path: Path) -> None:
    """device=auto with a card that NVML alone sees is an error with the cure; device=cpu is a choice."""
    sweep = start(tmp_path / "store", "size=8", CUDA_VISIBLE_DEVICES="99")
    told = sweep.communicate(timeout=120)[1]
    assert sweep.returncode == 1
    assert "device=auto: there is" in told and "or write device=cpu" in told


def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Its number, and those that there are."""
    sweep = start(tmp_path / "store", "size=8", "devices=99")
    assert "devices=99: allowed is 0" in sweep.communicate(timeout=120)[1]
    assert sweep.returncode == 1


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two cards")
def test_all_cards_take_part(tmp_path: Path) -> None:
    """devices=all: every point once, on cards with UUIDs of their own, in one environment; devices=1 uses one."""
    cards = set(range(torch.cuda.device_count()))
    for devices, size, expected in (("all", "64,96,128,160,192,224,256,288", cards), ("1", "256", {1})):
        sweep = start(tmp_path / devices, f"size={size}", f"devices={devices}")
        said = sweep.communicate(timeout=240)
        assert sweep.returncode == 0, said
        runs = pl.concat([pl.read_parquet(path) for path in (tmp_path / devices).glob("runs/*/*.parquet")])
        facts = [json.loads(each) for each in runs["facts"]]
        assert runs["point_id"].n_unique() == len(facts) == len(size.split(","))
        assert {each["device_index"] for each in facts} == expected
        assert len({each["device_uuid"] for each in facts}) == len(expected)
        assert runs["environment_id"].n_unique() == 1
