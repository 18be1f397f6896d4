"""A process of its own for the work of one worker: it can be given up when its time is over, and the worker lives on.

The parent writes pickled tasks to it and reads pickled answers; it ends with its parent.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

#: One thread per task; the answer is the same on every machine.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}


class Child:
    """The process, started when it is needed."""

    def __init__(self, memory: float | None = None):
        self.memory, self.process = memory, None

    def ask(self, message: Any, limit: float | None) -> dict[str, Any]:
        """The answer: ``status`` is ok, failed, time (it took longer than the limit) or died."""
        process = self.ready(limit)
        try:
            pickle.dump(message, process.stdin)
            process.stdin.flush()
        except OSError:
            self.end()
            return {"status": "died", "error": "the process was gone"}
        ready, _, _ = select.select([process.stdout], [], [], limit)
        if not ready:
            self.end()
            return {"status": "time", "error": f"not done after {limit:g} s"}
        try:
            return pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError):
            code = process.wait()
            self.end()
            return {"status": "died", "error": f"the process ended with {code}"}

    def ready(self, limit: float | None) -> subprocess.Popen:
        """The process, once it has imported what it needs."""
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, "-m", "reproduction.child", str(self.memory or 0)]
            environment = {**os.environ, **ONE_THREAD}
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment
            )
            pickle.load(self.process.stdout)
        return self.process

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def end_with_parent(parent: int) -> None:
    """Nobody waits for the answer of an orphan."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def serve(answers) -> None:
    from .methods import run_task

    pickle.dump("ready", answers)
    answers.flush()
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        begun = time.monotonic()
        try:
            result = run_task(*arguments) if function is None else function(*arguments)
            told = {"status": "ok", "result": result}
        except Exception as error:
            trace = traceback.format_exc().replace(str(ROOT), ".")
            told = {"status": "failed", "error": f"{type(error).__name__}: {error}", "trace": trace}
        told["seconds"] = time.monotonic() - begun
        pickle.dump(told, answers)
        answers.flush()


def main() -> None:
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    memory = float(sys.argv[1])
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (int(memory * 2**30), int(memory * 2**30)))
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(answers)


if __name__ == "__main__":
    main()
