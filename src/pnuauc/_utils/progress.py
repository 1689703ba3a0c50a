"""Progress for long work: a bar in a terminal, silence in scripts, pipes and notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar


class Progress:
    """Share of the work that is done: ``bar(stage, share of the stage, detail)``.

    draw : called with (text, share of everything)
    stages : share of the time that each stage takes, in their order; by default stages are words
        only, and their share is of everything
    """

    def __init__(self, draw: Callable[[str, float], None], stages: Mapping[str, float]) -> None:
        self.draw, self.stages = draw, stages
        self._stage, self._share, self._within = "", 0.0, (0.0, 1.0)

    def __call__(self, stage: str, share: float, detail: str = "") -> None:
        if stage in self.stages:
            before = list(self.stages).index(stage)
            total = sum(self.stages.values())
            start = sum(list(self.stages.values())[:before]) / total
            self._within = start, self.stages[stage] / total
        self._stage = stage
        self.inside(share, detail)

    def inside(self, share: float, detail: str = "") -> None:
        """The same stage, further on; a share of 0 where nobody knows how far."""
        start, width = self._within
        self._share = max(self._share, start + width * min(share, 1.0))  # never goes back
        self.draw(f"{self._stage}{detail and f', {detail}'}", self._share)


#: The bar that is open: work inside it moves that one.
_OPEN: ContextVar[Progress | None] = ContextVar("_OPEN", default=None)


@contextmanager
def progress_bar(
    title: str, show: bool | None = None, stages: Mapping[str, float] | None = None
) -> Iterator[Callable[..., None]]:
    """Give a :class:`Progress` that draws a bar with the time left on standard error.

    ``show=None`` draws only in a terminal, and only where rich is installed (the extra "cli").
    Inside an open bar, shown or not, no other is drawn: its stage goes on.
    """
    outer = _OPEN.get()
    if outer is not None:
        yield (
            lambda stage, share, detail="": (
                outer(stage, share, detail)
                if stage in outer.stages
                else outer.inside(share, detail or stage)
            )
        )
        return
    shown = sys.stderr.isatty() if show is None else show
    with _drawn(title) if shown else nullcontext(lambda text, share: None) as draw:
        bar = Progress(draw, stages or {})
        token = _OPEN.set(bar)
        try:
            yield bar
        finally:
            _OPEN.reset(token)


@contextmanager
def _drawn(title: str) -> Iterator[Callable[[str, float], None]]:
    """What draws (text, share done)."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield lambda text, share: None
        return
    columns = (
        BarColumn(30),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda text, share: bar.update(
            task, completed=share, description=f"{title}: {text}" if text else title
        )
