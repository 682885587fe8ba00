"""Plots of a metric over instances: bars of characters, and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from falcon_assets.features.quality.operations import MetricHistory, MetricValue
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.model.instant import format_instant

_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDTH, _HEIGHT, _MARGIN = 800, 240, 40
_COLORS = {InstanceVerdict.VALID: "#2e7d32", InstanceVerdict.INVALID: "#c62828"}


def bars(values: Sequence[float | None], width: int) -> list[str]:
    """A bar for each value, from the smaller of the smallest and 0 on; empty where there is none."""
    known = [one for one in values if one is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    return ["" if one is None else _bar(one - low, high - low, width) for one in values]


def _bar(part: float, whole: float, width: int) -> str:
    eighths = round(part / whole * width * 8) if whole else 0
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def svg(history: MetricHistory) -> str:
    """A line with a dot for each instance, green where it is valid and red where not; no script, nothing from afar."""
    measured = [(number, one) for number, one in enumerate(history.values) if one.value is not None]
    low = min([0.0, *(one.value or 0.0 for _, one in measured)])
    high = max([0.0, *(one.value or 0.0 for _, one in measured)])

    def point(number: int, one: MetricValue) -> str:
        x = _MARGIN + (_WIDTH - 2 * _MARGIN) * number / max(len(history.values) - 1, 1)
        y = _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * ((one.value or 0.0) - low) / ((high - low) or 1)
        return f"{x:.1f},{y:.1f}"

    line = " ".join(point(number, one) for number, one in measured)
    dots = []
    for number, one in measured:
        x, _, y = point(number, one).partition(",")
        said = f"{format_instant(one.instance)}: {one.value:g}, {one.verdict.value}"
        dots.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{_COLORS[one.verdict]}"><title>{said}</title></circle>')
    title = escape(f"{history.metric} of {history.feed} on {history.cluster}")
    ends = [format_instant(one.instance) for one in (history.values[0], history.values[-1])]
    texts = [
        (_MARGIN, 20, "start", title),
        (_MARGIN, _HEIGHT - 12, "start", ends[0]),
        (_WIDTH - _MARGIN, _HEIGHT - 12, "end", ends[1]),
        (_MARGIN - 6, _MARGIN, "end", f"{high:g}"),
        (_MARGIN - 6, _HEIGHT - _MARGIN, "end", f"{low:g}"),
    ]
    written = "".join(f'<text x="{x}" y="{y}" text-anchor="{side}">{text}</text>' for x, y, side, text in texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12">{written}<polyline points="{line}" fill="none" stroke="#555"/>{"".join(dots)}</svg>\n'
    )
