"""Makes the numpy statement of the problem and the scikit-learn baseline importable."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
