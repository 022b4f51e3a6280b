"""The store's only writer: files appear whole or not at all, and are never overwritten (docs/store.md)."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import polars as pl


class StoreError(Exception):
    """The store cannot be written: says where and why."""


def new_id() -> str:
    """An identifier ordered by time and random: 11 hexadecimal digits of milliseconds, 8 of chance."""
    return f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(4)}"


class Store:
    """All paths of a store, and the one way to put a file there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check(self) -> None:
        """Make the folder and prove that a file can be written and synced. Raises StoreError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f"probe.{secrets.token_hex(4)}.tmp"
            try:
                _write(probe, b"probe")
            finally:
                probe.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"store={self.folder}: cannot be written: {error.strerror or error}") from error

    def write_run(self, run: pl.DataFrame, events: pl.DataFrame | None) -> bool:
        """Publish a run: its events first, then the row that commits them. False if the run was there already."""
        sweep_id, run_id = run.item(0, "sweep_id"), run.item(0, "run_id")
        if events is not None and events.height:
            self.publish(events, self.folder / "events" / sweep_id / f"{run_id}.parquet")
        return self.publish(run, self.folder / "runs" / sweep_id / f"{run_id}.parquet")

    def write_environment(self, environment: pl.DataFrame) -> bool:
        """Publish an environment, once."""
        name = environment.item(0, "environment_id")
        return self.publish(environment, self.folder / "environments" / f"{name}.parquet")

    def write_roofs(self, roofs: pl.DataFrame) -> bool:
        """Publish the roofs of an environment, once."""
        return self.publish(roofs, self.roofs_path(roofs.item(0, "environment_id")))

    def roofs_path(self, environment_id: str) -> Path:
        """Where an environment's roofs lie."""
        return self.folder / "roofs" / f"{environment_id}.parquet"

    def roofs(self, environment_id: str) -> pl.DataFrame | None:
        """The roofs of an environment, None while they have not been measured, or where the file cannot be read."""
        try:
            return pl.read_parquet(self.roofs_path(environment_id))
        except (OSError, pl.exceptions.PolarsError):
            return None

    def write_artifact(self, sweep_id: str, name: str, content: bytes) -> str:
        """Put an artifact beside the tables; its path below the store."""
        path = self.folder / "artifacts" / sweep_id / name
        self._place(path, lambda file: file.write(content))
        return str(path.relative_to(self.folder))

    def publish(self, frame: pl.DataFrame, path: Path) -> bool:
        """Write a table under its name unless the name is taken; whether it was written. Raises StoreError."""
        if path.exists():
            return False
        return self._place(path, lambda file: frame.write_parquet(file, compression="zstd"))

    def _place(self, path: Path, fill: Callable[[IO[bytes]], object]) -> bool:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with temporary.open("xb") as file:
                    fill(file)
                    file.flush()
                    os.fsync(file.fileno())
                return _publish(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _publish(temporary: Path, path: Path) -> bool:
    """Give the finished file its name without overwriting: a link; where links do not exist, a claim and a rename."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        temporary.replace(path)
    return True
