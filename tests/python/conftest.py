"""Makes the numpy statement of the problem and the scikit-learn baseline importable, and runs the built command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

BINARY = Path(os.environ.get("AGEPATH_BIN", ROOT / "target/release/agepath"))
needs_command = pytest.mark.skipif(not BINARY.is_file(), reason=f"{BINARY} is not built")


def agepath(*args) -> str:
    """What the command prints; it must succeed."""
    done = subprocess.run([str(BINARY), *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"agepath {' '.join(map(str, args))[:500]}\n{done.stderr}"
    return done.stdout
