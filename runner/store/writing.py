"""One way to put a file into a store: written beside its place, synced, and given its name without overwriting."""

from __future__ import annotations

import io
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import polars as pl

from runner.store import files


class StoreError(Exception):
    """The store cannot be read or written: says where and why."""


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
                _write(probe, lambda file: file.write(b"probe"))
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

    def write_events(self, sweep_id: str, run_id: str, fill: Callable[[IO[bytes]], object]) -> bool:
        """Put events of a run that come bit by bit into place, before `write_run` commits them. Raises StoreError."""
        return self.place(self.folder / "events" / sweep_id / f"{run_id}.parquet", fill)

    def live_runs(self, columns: Sequence[str]) -> pl.DataFrame:
        """These columns of all live runs of all sweeps, typed as docs/store.md says; a missing column is null.

        Each run_id once. A file that is empty or cannot be read has no rows. Where files vanish (another process
        compacts the store) they are listed again.

        Raises:
            StoreError: files may not be read, or keep vanishing.
            KeyError: a column that no run has.
        """
        try:
            return files.live_runs(self.folder / "runs", columns)
        except OSError as error:
            raise StoreError(f"store={self.folder}: cannot be read: {error.strerror or error}") from error

    def write_environment(self, environment: pl.DataFrame) -> bool:
        """Publish an environment, once."""
        name = environment.item(0, "environment_id")
        return self.publish(environment, self.folder / "environments" / f"{name}.parquet")

    def environment_path(self, environment_id: str) -> Path:
        """Where an environment lies."""
        return self.folder / "environments" / f"{environment_id}.parquet"

    def environment(self, environment_id: str) -> dict[str, Any] | None:
        """The row of an environment, None where there is none that can be read."""
        try:
            return pl.read_parquet(self.environment_path(environment_id)).row(0, named=True)
        except (OSError, pl.exceptions.PolarsError):
            return None

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

    def write_code(self, code: pl.DataFrame) -> str:
        """Publish a generated file, once; its id."""
        code_id = str(code.item(0, "code_id"))
        self.publish(code, self.folder / "code" / f"{code_id}.parquet")
        return code_id

    def write_artifact(self, sweep_id: str, name: str, content: bytes) -> str:
        """Put an artifact beside the tables; its path below the store."""
        path = self.folder / "artifacts" / sweep_id / name
        self.place(path, lambda file: file.write(content))
        return str(path.relative_to(self.folder))

    def publish(self, frame: pl.DataFrame, path: Path) -> bool:
        """Write a table under its name unless the name is taken; whether it was written. Raises StoreError."""
        content = io.BytesIO()  # polars itself calls a full disk a fault of the file
        frame.write_parquet(content, compression="zstd")
        return self.place(path, lambda file: file.write(content.getbuffer()))

    def copy(self, origin: Path, path: Path) -> bool:
        """Copy a file of another store unless the name is taken; whether it was written. Raises StoreError."""
        with origin.open("rb") as content:
            return self.place(path, lambda file: shutil.copyfileobj(content, file))

    def place(self, path: Path, fill: Callable[[IO[bytes]], object]) -> bool:
        """Give `path` the content that `fill` writes, unless the name is taken; whether it was written.

        Raises:
            StoreError: the disk is full, the folder read-only, the name too long; nothing is left behind then.
        """
        try:
            return not path.exists() and _place(path, fill)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be written: {files.reason(error)}") from error


def _place(path: Path, fill: Callable[[IO[bytes]], object]) -> bool:
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        _write(temporary, fill)
        return _publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    with path.open("xb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())


def _publish(temporary: Path, path: Path) -> bool:
    """Give the finished file its name without overwriting: a link; where links do not exist, a claim and a rename."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError:
        return _claim(temporary, path)
    return True


def _claim(temporary: Path, path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    try:
        temporary.replace(path)
    except OSError:
        path.unlink(missing_ok=True)  # an empty claim would keep the name from everybody
        raise
    return True
