"""Tasks on Dask: a local cluster or any scheduler. What fails, dies or takes too long is recorded and tried once more."""

from __future__ import annotations

import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
from dask.distributed import Client, LocalCluster, as_completed

from . import data
from .child import Child
from .declared import Task
from .methods import engine_of
from .store import Row, Store

#: A task that took its worker with it is ours to try again, not the scheduler's; nothing waits on a worker but what it runs.
CONFIG = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.daemon": False,
    "logging.distributed": "error",
}

_child: Child | None = None


def perform(arguments: tuple, limit: float | None, memory: float | None, function: Callable | None = None) -> dict[str, Any]:
    """On a worker: the task in the worker's child."""
    global _child
    if _child is None:
        _child = Child(memory)
    return _child.ask((function, arguments), limit)


@contextmanager
def connected(scheduler: str | None, workers: int, memory: float) -> Iterator[Client]:
    """A client of the scheduler, or of a local cluster of single-threaded processes."""
    with dask.config.set(CONFIG):
        if scheduler:
            with Client(scheduler) as client:
                yield client
        else:
            local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
            with LocalCluster(**local, memory_limit=f"{memory}GiB") as cluster, Client(cluster) as client:
                yield client


def key_of(task: Task) -> str:
    """The key of a task's row."""
    return task.key(data.hash_of(task.spec["data"]), engine_of(task.method))


def missing(tasks: list[Task], store: Store, again: bool = False) -> dict[str, Task]:
    """Tasks without a row by their keys; with `again` also those whose row is not ok. Equal tasks of two tables are one."""
    known, found = store.status(), {}
    for task in tasks:
        key = key_of(task)
        if key not in known or (again and known[key][0] != "ok"):
            found.setdefault(key, task)
    return found


class Progress:
    """One line at most every few seconds: how much is done, and how long the rest may take."""

    def __init__(self, tasks: dict[str, Task], workers: int, out=sys.stderr, period: float = 5.0):
        self.left = defaultdict(int)
        for task in tasks.values():
            self.left[task.table, task.method] += 1
        self.total, self.done, self.bad, self.workers = len(tasks), 0, 0, workers
        self.seen = defaultdict(list)
        self.out, self.period, self.begun, self.told = out, period, time.monotonic(), 0.0

    def tell(self, task: Task, status: str, seconds: float) -> None:
        self.done += 1
        self.bad += status != "ok"
        self.left[task.table, task.method] -= 1
        self.seen[task.table, task.method].append(seconds)
        self.seen[task.method].append(seconds)
        now = time.monotonic()
        if now - self.told >= self.period or self.done == self.total:
            self.told = now
            text = f"{self.done} of {self.total} tasks, {self.bad} not ok, {now - self.begun:.0f} s, about {self.to_go():.0f} s to go"
            print(text, file=self.out, flush=True)

    def to_go(self) -> float:
        """From the mean time of the same method in the same table, else anywhere, else of everything so far."""
        every = [s for kind, seconds in self.seen.items() if isinstance(kind, str) for s in seconds]
        usual = sum(every) / max(len(every), 1)
        rest = 0.0
        for (table, method), count in self.left.items():
            seen = self.seen.get((table, method)) or self.seen.get(method)
            rest += count * (sum(seen) / len(seen) if seen else usual)
        return rest / self.workers


def run(
    tasks: dict[str, Task],
    store: Store,
    client: Client,
    *,
    limit: float | None = None,
    memory: float | None = None,
    retries: int = 1,
    progress: Progress | None = None,
    function: Callable | None = None,
) -> dict[str, int]:
    """Runs the tasks and stores each result as it comes; rows by status. `function` stands in for the methods, in tests."""
    attempts, counts, of_future = defaultdict(int), defaultdict(int), {}
    token = uuid.uuid4().hex

    def submit(key: str):
        task = tasks[key]
        attempts[key] += 1
        arguments = (task.spec, task.run, task.method, limit)
        # A tuple: all tasks are of one group, which the scheduler keeps to itself until a worker is free.
        name = (f"tasks-{token}", key, attempts[key])
        future = client.submit(perform, arguments, limit, memory, function, key=name, pure=False)
        of_future[future.key] = key
        return future

    pending = as_completed([submit(key) for key in tasks], raise_errors=False)
    for future in pending:
        key = of_future.pop(future.key)
        task = tasks[key]
        if future.status == "finished":
            told = future.result()
        else:
            error = future.exception()
            told = {"status": "died", "error": f"{type(error).__name__}: the worker was lost"}
        future.release()
        status = told["status"]
        error = told.get("error")
        store.put(
            Row(
                key, task.table, task.cell, task.run, task.method, engine_of(task.method), status,
                attempts[key], told.get("seconds"), told.get("result"), error,
            )
        )  # fmt: skip
        if status != "ok" and attempts[key] <= retries:
            pending.add(submit(key))
            continue
        counts[status] += 1
        if progress:
            progress.tell(task, status, told.get("seconds") or limit or 0.0)
    return dict(counts)
