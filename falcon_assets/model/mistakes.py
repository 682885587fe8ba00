"""What is wrong with a program of a workflow, as far as it can be told without running it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A place in a program that cannot work, or looks so.

    Attributes:
        line: Counts from 1.
        message: What is wrong, and what to do.
        is_certain: Whether it cannot work; else it may, because Spark knows more than is known here.
        column: Counts from 1.
        is_doubt: Whether only the parser does not understand it, which Spark may: never a reason to refuse it.
    """

    line: int
    message: str
    is_certain: bool = True
    column: int = 1
    is_doubt: bool = False
