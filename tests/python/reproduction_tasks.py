"""Stand-ins for methods that behave badly, importable where a task's process runs."""

import os
import time
from pathlib import Path


def behave(spec, run, method, limit):
    if method == "fails":
        raise ValueError("on purpose")
    if method == "slow":
        time.sleep(60)
    if method == "dies":
        os._exit(3)
    if method == "once":
        mark = Path(spec["folder"]) / f"{run}"
        if not mark.exists():
            mark.touch()
            raise ValueError("the first time")
    if method == "nap":
        time.sleep(0.4)
    return {"theirs": {"test": {"mae": float(run)}}}
