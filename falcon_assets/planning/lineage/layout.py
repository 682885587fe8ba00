"""Where the nodes of a graph stand when it is drawn: inputs left of what was made from them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

_SWEEPS = 4


def layout(ids: Sequence[str], edges: Iterable[tuple[int, int]]) -> list[tuple[int, float]]:
    """The column and the row of each node; no two share a place, and columns are centred about row 0.

    An edge leads to the right, but for one of each circle.

    Args:
        ids: Of the nodes.
        edges: From where to where, by their places among the ids.
    """
    inputs: dict[int, list[int]] = {number: [] for number in range(len(ids))}
    outputs: dict[int, list[int]] = {number: [] for number in range(len(ids))}
    for start, end in edges:
        inputs[end].append(start)
        outputs[start].append(end)
    columns = _columns(inputs, outputs)
    return _rows(ids, columns, inputs, outputs)


def _columns(inputs: Mapping[int, Sequence[int]], outputs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """As far to the right as the longest way to it; what was made from nothing stands beside what is made from it."""
    columns = dict.fromkeys(inputs, 0)
    missing = {number: len(of) for number, of in inputs.items()}
    left = deque(sorted(missing, key=lambda number: missing[number]))  # where a circle has to be entered
    ready = deque(number for number, count in missing.items() if not count)
    done: set[int] = set()
    while ready or left:
        number = ready.popleft() if ready else left.popleft()
        if number in done:
            continue
        done.add(number)
        for output in outputs[number]:
            missing[output] -= 1
            if output not in done:
                columns[output] = max(columns[output], columns[number] + 1)
                if not missing[output]:
                    ready.append(output)
    for number, read in inputs.items():
        if not read and outputs[number]:
            columns[number] = min(columns[output] for output in outputs[number]) - 1
    return columns


def _rows(
    ids: Sequence[str],
    columns: Mapping[int, int],
    inputs: Mapping[int, Sequence[int]],
    outputs: Mapping[int, Sequence[int]],
) -> list[tuple[int, float]]:
    """Each about the middle of its neighbours, to the left and to the right in turn: few edges cross then."""
    of_column: dict[int, list[int]] = {}
    for number in sorted(inputs, key=ids.__getitem__):
        of_column.setdefault(columns[number], []).append(number)
    places = {number: _centred(row, of) for of in of_column.values() for row, number in enumerate(of)}
    for sweep in range(_SWEEPS):
        neighbours = outputs if sweep % 2 else inputs
        for column in sorted(of_column, reverse=bool(sweep % 2)):
            middle = {
                number: sum(places[one] for one in near) / len(near) if (near := neighbours[number]) else places[number]
                for number in of_column[column]
            }
            of_column[column].sort(key=middle.__getitem__)
            places.update({number: _centred(row, of_column[column]) for row, number in enumerate(of_column[column])})
    return [(columns[number], places[number]) for number in inputs]


def _centred(row: int, column: Sequence[int]) -> float:
    return row - (len(column) - 1) / 2
