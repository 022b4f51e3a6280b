"""`python -m runner.store check|compact|repair|merge`: look after a store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from runner.store import files
from runner.store.checking import Checked, check
from runner.store.compaction import AGE_S, KINDS, compact, tidy
from runner.store.merging import merge, refuse
from runner.store.repairing import Moved, repair
from runner.store.writing import Store, StoreError
from runner.words import counted

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
        return _told(str(error), 1)


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
    code = max((_compact_sweep(store, sweep_id, options.age) for sweep_id in options.sweeps or known), default=0)
    try:
        print(f"{counted(len(tidy(store, options.age)), 'leftover')} removed")
    except StoreError as error:
        return _told(str(error), 2)
    return code


def _compact_sweep(store: Store, sweep_id: str, age_s: float) -> int:
    try:
        done = compact(store, sweep_id)
    except StoreError as error:
        return _told(str(error), 2)
    many = f"{counted(done.runs, 'run')}, {counted(done.events, 'event')}"
    wait = f"; {counted(done.superseded, 'superseded file')} to go at an age of {age_s:g} s" if done.superseded else ""
    print(f"{sweep_id}: {many}{wait}")
    return 0


def _repair(store: Store, options: argparse.Namespace) -> int:
    _require(store)
    done = repair(store, options.age)
    for each in done.moved:
        print(f"{each.path}: moved to {each.to} ({each.why}){_went_with(each)}")
    for file in done.removed:
        print(f"{file}: removed")
    left = [problem for problem in check(store.folder).problems if problem.damaged]
    for problem in left:
        print(f"still damaged: {problem.path}: {problem.what}")
    print(
        f"{counted(len(done.moved), 'unreadable file')} moved, {counted(len(done.removed), 'leftover')} removed, "
        f"{_damage(len(left))} left"
    )
    if done.untidy:
        return _told(done.untidy, 2)
    return 2 if left or any(each.lost_runs != 0 for each in done.moved) else 0


def _went_with(moved: Moved) -> str:
    """What is lost with a file that was moved away, and what is not."""
    if moved.kind not in KINDS:
        return ""
    lost = "an unknown number of runs" if moved.lost_runs is None else counted(moved.lost_runs, "run")
    of = "the events of " if moved.kind == "events" else ""
    return f"; with it went {of}{lost}; live runs beside it: {moved.live_runs}"


def _merge(store: Store, options: argparse.Namespace) -> int:
    for origin in options.origins:
        refuse(origin, store.folder)
    store.check()
    return max(_merge_one(origin, store) for origin in options.origins)


def _merge_one(origin: Path, store: Store) -> int:
    try:
        done = merge(origin, store)
    except StoreError as error:
        return _told(str(error), 2)
    print(f"{origin}: {counted(done.runs, 'run')} copied, {done.dropped} dropped that were there already")
    for file, why in done.left.items():
        print(f"{file}: left out, it cannot be read: {why}", file=sys.stderr)
    return 2 if done.left else 0


def render(checked: Checked) -> str:
    """One line a sweep, one line a problem."""
    width = max((len(each.sweep_id) for each in checked.sweeps), default=0)
    lines = [
        f"{each.sweep_id:<{width}}  {counted(each.runs, 'run')} "
        f"({counted(each.parts, 'part')}, {counted(each.compacted, 'compacted file')}), "
        f"{counted(each.events, 'event')}, {counted(each.environments, 'environment')}"
        for each in checked.sweeps
    ]
    problems = [f"{'damaged' if each.damaged else 'note'}: {each.path}: {each.what}" for each in checked.problems]
    damaged = sum(each.damaged for each in checked.problems)
    total = f"{counted(len(lines), 'sweep')}, {_damage(damaged)}, {counted(len(problems) - damaged, 'note')}"
    return "\n".join([*lines, *problems, total])


def _damage(count: int) -> str:
    return f"damage in {counted(count, 'place')}" if count else "no damage"


def _require(store: Store) -> None:
    if not store.folder.is_dir():
        raise StoreError(f"there is no store at {store.folder}: run a sweep first, or name one with --store DIR")


def _told(error: str, code: int) -> int:
    print(f"error: {' '.join(error.split())}", file=sys.stderr)
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
            type=_age_s,
            default=AGE_S,
            metavar="SECONDS",
            help="leftovers younger than this stay (default: %(default).0f); less only while "
            "nobody reads or writes the store, whose files would go from under them",
        )
    return parser


def _age_s(text: str) -> float:
    try:
        age_s = float(text)
    except ValueError:
        age_s = -1
    if not age_s >= 0:  # nan neither
        raise argparse.ArgumentTypeError(f"{text}: allowed is a number of seconds from 0 on, such as {AGE_S:.0f}")
    return age_s


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
