"""Pairs of measurements, and the lines that the benchmarks print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias, TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")
Steps: TypeAlias = Mapping[str, float]
"""Seconds of each step of one measurement."""


@dataclass(frozen=True)
class Line:
    """One result: a ratio of two times where ``plain`` is there, else the time itself.

    Attributes:
        what: What was measured.
        ours: Seconds of falcon_assets, of each round.
        plain: Seconds of plain code in the same rounds.
        bar: What the result should not be above; None where it is told for information.
        unit: Of what is not compared with plain code.
    """

    what: str
    ours: tuple[float, ...]
    plain: tuple[float, ...] = ()
    bar: float | None = None
    unit: str = " s"

    @property
    def each(self) -> tuple[float, ...]:
        """The result of each round."""
        if not self.plain:
            return self.ours
        return tuple(one / other for one, other in zip(self.ours, self.plain, strict=True))

    @property
    def measured(self) -> float:
        """The median of the rounds."""
        return median(self.each)

    @property
    def verdict(self) -> str:
        """Whether the bar was met."""
        if self.bar is None:
            return ""
        return "ok" if self.measured <= self.bar else "missed"


def alternate(rounds: int, ours: Callable[[], T], plain: Callable[[], T]) -> Iterator[tuple[T, T]]:
    """Runs both sides in turn, so that whatever else the machine does hits both alike."""
    for _ in range(rounds):
        yield ours(), plain()


def line_of(what: str, rounds: Sequence[tuple[Steps, Steps]], steps: Sequence[str], bar: float | None = None) -> Line:
    """The result of the rounds, ours and plain, where only those steps count."""
    ours, plain = (tuple(sum(one[step] for step in steps) for one in side) for side in zip(*rounds, strict=True))
    return Line(what, ours, plain, bar)


def show(lines: list[Line]) -> None:
    """Prints the lines as a table."""
    table = Table(title="Benchmarks: medians of all rounds", title_justify="left")
    table.add_column("what", overflow="fold")
    for name in ("rounds", "falcon_assets", "plain", "measured", "spread", "bar"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for line in lines:
        table.add_row(*_cells(line))
    console = Console()
    Console(width=max(console.width, 120)).print(table)


def _cells(line: Line) -> tuple[str, ...]:
    unit = "x" if line.plain else line.unit
    return (
        line.what,
        str(len(line.ours)),
        f"{_short(median(line.ours))}{line.unit}",
        f"{_short(median(line.plain))} s" if line.plain else "",
        f"{_short(line.measured)}{unit}",
        f"{_short(min(line.each))}-{_short(max(line.each))}",
        "" if line.bar is None else f"{line.bar:g}{unit}",
        line.verdict,
    )


def _short(number: float) -> str:
    return f"{number:,.2f}" if number >= 0.1 else f"{number:.4f}"
