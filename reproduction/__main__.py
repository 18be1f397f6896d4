"""``python -m reproduction``: run, show, merge, export, page."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from . import declared
from .store import Store

ROOT = Path(__file__).parents[1]
STORE = ROOT / "target/reproduction.sqlite"
SMALL_STORE = ROOT / "target/reproduction-small.sqlite"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m reproduction", description="The paper's tables and figures, computed again.")
    commands = top.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--store", type=Path, help=f"the file of results (default: {STORE.relative_to(ROOT)})")
        sub.add_argument("--small", action="store_true", help="few rows and cells, minutes in all; a store of its own")
        return sub

    run = command("run", "run the tasks that have no result yet")
    run.add_argument("tables", nargs="+", help="labels as in the paper (tab:acc1), or all")
    run.add_argument("--runs", type=int, help="random splits (default: 20, small: 1)")
    run.add_argument("--methods", help="only these, separated by commas")
    run.add_argument("--cells", help="only cells whose name contains this")
    run.add_argument("--models", help="only cells of these models, separated by commas")
    run.add_argument("--scheduler", help="address of a Dask scheduler (default: a local cluster)")
    run.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="of the local cluster")
    run.add_argument("--memory", type=float, default=6.0, help="GiB per worker")
    run.add_argument("--limit", type=float, default=600.0, help="seconds per task")
    run.add_argument("--retries", type=int, default=1, help="further tries of a task that is not ok")
    run.add_argument("--again", action="store_true", help="also tasks whose result is not ok")
    run.add_argument("--share", default="1/1", help="K/N: the K-th of N shares of the tasks, for several machines")
    show = command("show", "print what the store has")
    show.add_argument("tables", nargs="*", default=["all"])
    merge = command("merge", "take the rows of other stores")
    merge.add_argument("others", nargs="+", type=Path)
    page = command("page", "write the page, its figures and the results as CSV")
    page.add_argument("--docs", type=Path, default=ROOT / "docs")
    return top


def ours(key: str, share: str) -> bool:
    """Whether a task is of this share."""
    k, n = (int(part) for part in share.split("/"))
    return int(key[:8], 16) % n == k - 1


def run(o: argparse.Namespace, store: Store) -> None:
    from . import cluster

    runs = o.runs or (1 if o.small else 20)
    methods = o.methods.split(",") if o.methods else None
    tasks = [t for table in declared.chosen(o.tables) for t in declared.tasks(table, runs, methods, o.small)]
    tasks = [t for t in tasks if not o.cells or o.cells in t.cell]
    tasks = [t for t in tasks if not o.models or t.spec["model"] in o.models.split(",")]
    todo = {key: t for key, t in cluster.missing(tasks, store, o.again).items() if ours(key, o.share)}
    print(f"{len(tasks)} tasks, {len(todo)} to do")
    if not todo:
        return
    begun = time.monotonic()
    with cluster.connected(o.scheduler, o.workers, o.memory) as client:
        progress = cluster.Progress(todo, o.workers)
        counts = cluster.run(
            todo, store, client, limit=o.limit, memory=o.memory, retries=o.retries, progress=progress
        )  # fmt: skip
    print(f"{counts} in {time.monotonic() - begun:.0f} s")


def main() -> None:
    o = parser().parse_args()
    with Store(o.store or (SMALL_STORE if o.small else STORE)) as store:
        if o.command == "run":
            run(o, store)
        elif o.command == "merge":
            for other in o.others:
                print(f"{store.merge(other)} rows from {other}")
        elif o.command == "show":
            from .summary import show

            print(show(store, declared.chosen(o.tables or ["all"]), o.small))
        elif o.command == "page":
            from .page import write

            write(store, o.docs, o.small)


if __name__ == "__main__":
    main()
