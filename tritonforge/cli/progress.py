"""A progress bar on a terminal; nothing where there is none."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from tritonforge.events import OnProgress, ignore_progress


@contextlib.contextmanager
def progress_bar(label: str, *, wanted: bool) -> Iterator[OnProgress]:
    """Something to tell bytes done and in all. The bar is on standard error, and gone when all is done.

    Args:
        label: What goes on.
        wanted: Whether a bar is wanted at all; on anything but a terminal there is none anyway.
    """
    if not wanted or not sys.stderr.isatty():
        yield ignore_progress
        return
    columns = (TextColumn(label), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(label, total=None)

    def tell(done: int, total: int) -> None:
        if not bar.live.is_started:
            bar.start()
        bar.update(task, completed=done, total=total)
        if done >= total:
            bar.stop()  # before the next line of text

    try:
        yield tell
    finally:
        bar.stop()
