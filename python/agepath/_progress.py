"""What `verbose` shows while a path is followed."""

from __future__ import annotations

import sys


class Bar:
    """A tqdm bar if tqdm is there, else lines on standard error."""

    def __init__(self, title):
        self.title, self.done, self.bar = title, 0.0, None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        layout = "{desc}: {percentage:3.0f}%|{bar}| {postfix} [{elapsed}]"
        self.bar = tqdm(total=1.0, desc=title, bar_format=layout)

    def __call__(self, done, age, events, jumps):
        text = f"age {age:.4g}, {events} critical points, {jumps} jumps"
        forward = max(done - self.done, 0.0)
        if self.bar is not None:
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update(forward)
        elif forward >= 0.1:
            print(f"{self.title}: {done:.0%}, {text}", file=sys.stderr)
        else:
            return
        self.done += forward

    def close(self):
        if self.bar is not None:
            self.bar.update(1.0 - self.done)
            self.bar.close()


def watched(verbose, title, progress, call):
    """`call` with a progress callback: the caller's own, a bar if `verbose`, or none."""
    if progress is not None or not verbose:
        return call(progress)
    bar = Bar(title)
    try:
        return call(bar)
    finally:
        bar.close()
