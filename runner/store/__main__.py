"""`python -m runner.store check|compact|repair|merge`: look after a store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from runner.store import files
from runner.store.checking import Checked, check
from runner.store.compaction import AGE_S, compact, tidy
from runner.store.merging import merge, refuse
from runner.store.repairing import repair
from runner.store.writing import Store, StoreError

EXAMPLES = """examples:
  python -m runner.store check                              what is in outputs/store, and is it whole?
  python -m runner.store compact                            few large files instead of many small ones
  python -m runner.store repair --store runs/h200           move aside what cannot be read
  python -m runner.store merge node1 node2 --store all      one store out of several

exit code: 0 well; 1 nothing could be done, wrong usage included; 2 something is damaged or failed
"""


def main(arguments: Sequence[str]) -> int:
    """Run one command: 0 well, 1 nothing could be done, 2 something is damaged or failed."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(Store(Path(options.store)), options))
    except StoreError as error:
        return _told(error, 1)


def _check(store: Store, options: argparse.Namespace) -> int:
    _require(store)
    checked = check(store.folder)
    print(render(checked))
    return 2 if any(problem.damaged for problem in checked.problems) else 0


def _compact(store: Store, options: argparse.Namespace) -> int:
    _require(store)
    store.check()
    known = [folder.name for folder in files.folders(store.folder / "runs")]
    if unknown := [sweep_id for sweep_id in options.sweeps if sweep_id not in known]:
        raise StoreError(f"store={store.folder}: holds no sweep {unknown[0]}; it holds {', '.join(known) or 'none'}")
    code = max((_compact_sweep(store, sweep_id) for sweep_id in options.sweeps or known), default=0)
    print(f"{len(tidy(store, options.age))} leftovers removed")
    return code


def _compact_sweep(store: Store, sweep_id: str) -> int:
    try:
        done = compact(store, sweep_id)
    except StoreError as error:
        return _told(error, 2)
    print(f"{sweep_id}: {done.runs} runs, {done.events} events; {done.superseded} files superseded")
    return 0


def _repair(store: Store, options: argparse.Namespace) -> int:
    _require(store)
    done = repair(store, options.age)
    for each in done.moved:
        print(f"{each.path}: moved to {each.to} ({each.why}); live runs beside it: {each.live_runs}")
    for file in done.removed:
        print(f"{file}: removed")
    print(f"{len(done.moved)} unreadable files moved, {len(done.removed)} leftovers removed")
    return 0


def _merge(store: Store, options: argparse.Namespace) -> int:
    for origin in options.origins:
        refuse(origin, store.folder)
    store.check()
    return max(_merge_one(origin, store) for origin in options.origins)


def _merge_one(origin: Path, store: Store) -> int:
    try:
        done = merge(origin, store)
    except StoreError as error:
        return _told(error, 2)
    print(f"{origin}: {done.runs} runs copied, {done.dropped} dropped that were there already")
    for file, why in done.left.items():
        print(f"{file}: left out, it cannot be read: {why}", file=sys.stderr)
    return 2 if done.left else 0


def render(checked: Checked) -> str:
    """One line a sweep, one line a problem."""
    width = max((len(each.sweep_id) for each in checked.sweeps), default=0)
    lines = [
        f"{each.sweep_id:<{width}}  {each.runs} runs ({each.parts} parts, {each.compacted} compacted files), "
        f"{each.events} events, {each.environments} environments"
        for each in checked.sweeps
    ]
    problems = [f"{'damaged' if each.damaged else 'note'}: {each.path}: {each.what}" for each in checked.problems]
    damaged = sum(each.damaged for each in checked.problems)
    return "\n".join([*lines, *problems, f"{len(lines)} sweeps, {damaged} damages, {len(problems) - damaged} notes"])


def _require(store: Store) -> None:
    if not store.folder.is_dir():
        raise StoreError(f"there is no store at {store.folder}: run a sweep first, or name one with --store DIR")


def _told(error: StoreError, code: int) -> int:
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """argparse's own exit code for wrong usage, 2, means here that something is damaged."""
        self.exit(1, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m runner.store",
        description="Look after a store.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="check|compact|repair|merge")
    _command(commands, "check", _check, "count what is there and tell every problem; changes nothing")
    compacting = _command(commands, "compact", _compact, "put the runs of a sweep into one file, then remove leftovers")
    compacting.add_argument("sweeps", nargs="*", metavar="SWEEP_ID", help="which sweeps (default: all)")
    repairing = _command(commands, "repair", _repair, "move unreadable files to damaged/, then remove leftovers")
    merging = _command(commands, "merge", _merge, "copy other stores into one; nothing is overwritten")
    merging.add_argument("origins", nargs="+", metavar="FROM", type=Path, help="folder of a store to copy")
    for each in (compacting, repairing):
        each.add_argument(
            "--age",
            type=float,
            default=AGE_S,
            metavar="SECONDS",
            help="leftovers younger than this stay, for readers at work (default: %(default).0f)",
        )
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    command: Callable[[Store, argparse.Namespace], int],
    what: str,
) -> _Parser:
    parser = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.add_argument("--store", default="outputs/store", metavar="DIR", help="the store (default: %(default)s)")
    parser.set_defaults(command=command)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
