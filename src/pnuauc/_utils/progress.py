"""Progress for long work: a bar in a terminal, silence in scripts, pipes and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(title: str, show: bool | None = None) -> Iterator[Callable[..., None]]:
    """Give a function ``tick(stage, share done, detail="")`` that draws a bar on standard error.

    ``show=None`` draws only in a terminal. The bar needs rich (``pip install "pnuauc[cli]"``);
    without it nothing is drawn, unless it was asked for.
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda stage, share, detail="": None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        last = ""

        def tell(stage: str, share: float, detail: str = "") -> None:
            nonlocal last
            if stage != last:
                last = stage
                print(f"{title}: {stage}", file=sys.stderr)

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, int] = {}

        def tick(stage: str, share: float, detail: str = "") -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(f"{title}: {stage}", total=1.0)
            text = f"{title}: {stage}{detail and f', {detail}'}"
            progress.update(tasks[stage], completed=share, description=text)  # type: ignore[arg-type]

        yield tick
