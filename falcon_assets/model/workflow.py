"""Workflows, and mistakes in their programs that can be seen without running them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from falcon_assets.model.base import Declaration, NonEmpty

if TYPE_CHECKING:
    from falcon_assets.model.feed import Feed


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


_ENGINES = "falcon_assets.compute.engines"
"""A name and no import: engines compute on Spark and stand above this layer."""

_FEWEST_TOGETHER = 6
"""Measured with an aggregate of small inputs on two cores: one query for 2, 4 and 8 instances takes 1.21, 1.08 and 0.77
of the time in which as many threads compute them."""


class Workflow(Declaration):
    """The declaration of an engine, and the keys that its workflows have; an engine adds keys of its own.

    Attributes:
        kinds: What Dagster shows with the assets.
        spark: ``session``: instances are computed in a session of their cluster's Spark, which others use as well, from
            inputs that were read into DataFrames; ``program``: a program has a Spark of its own, and reads by itself;
            ``none``: it is computed in the process of the run, with files that are on this machine, and starts no JVM.
    """

    kinds: ClassVar[tuple[str, ...]] = ("spark",)
    spark: ClassVar[Literal["session", "program", "none"]] = "session"

    name: NonEmpty | None = None
    """The name of the workflow, shown with the assets."""
    version: NonEmpty | None = None
    """Which version it is, shown with the assets."""
    lib: tuple[NonEmpty, ...] = ()
    """Jars and Python files (``.py``, ``.zip``, ``.egg``) that its session or program gets, or folders of them; below
    the folder of the entity definitions."""
    engine: str
    """The engine, a ``Literal`` in each."""

    @property
    def program(self) -> str:
        """The program in a word, shown with the assets."""
        return next(iter(self.files().values()), "")

    def files(self) -> Mapping[str, str]:
        """The files that have to be there, relative to the folder of the entity definitions, by key."""
        return {}

    def templates(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """The texts in which ``${...}`` is filled in, by key; inputs and outputs are variables in them too."""
        yield from ()

    def mistakes(
        self, root: Path, views: Collection[str], parameters: Collection[str]
    ) -> Iterator[tuple[str, Mistake]]:
        """Yields mistakes in its files that can be seen without Spark, each with the name of the file.

        Args:
            root: The folder of the entity definitions.
            views: The names of the inputs.
            parameters: The names of its variables.

        Raises:
            OSError: a file cannot be read.
        """
        yield from ()

    def why_alone(self, root: Path, cluster: str, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
        """Why its instances are computed one by one, in words; empty: many can be computed together.

        Args:
            root: The folder of the entity definitions.
            cluster: Where it is computed.
            inputs: The feeds that it reads.
            outputs: The feeds that it writes.
        """
        return f"the engine {self.engine} computes each instance on its own"

    @property
    def fewest_together(self) -> int:
        """From how many instances on it is faster to compute them together, unless that is asked for."""
        return 2 if self.asks_for_many else _FEWEST_TOGETHER

    @property
    def asks_for_many(self) -> bool:
        """Whether it is written for many instances at once: then who declares it is told where they are not."""
        return False

    def misfit(self, inputs: Sequence[Feed], outputs: Sequence[Feed]) -> str:
        """Why a workflow that :attr:`asks_for_many` cannot compute a process with these; empty: it can."""
        return ""

    def example(self, task: Any, result: Any) -> Any:
        """What others have to be like of an instance that was computed alone, and is not published yet.

        Returns:
            An :class:`~falcon_assets.compute.engines.computing.together.Example`.

        Raises:
            AloneError: instances have to be computed one by one.
        """
        raise NotImplementedError

    def compute_together(self, tasks: Sequence[Any], example: Any) -> list[Any]:
        """Computes many instances at once, each as :meth:`compute` does; only where :meth:`why_alone` allows it.

        Raises:
            AloneError: they have to be computed one by one.
            Exception: it failed, perhaps for one of them.
        """
        raise NotImplementedError

    @abstractmethod
    def compute(self, task: Any) -> Any:
        """Computes an instance and writes its outputs; what it needs of Spark is imported here, and nowhere above.

        Args:
            task: A :class:`~falcon_assets.compute.engines.computing.task.WorkflowTask`.

        Returns:
            A :class:`~falcon_assets.compute.engines.computing.task.WorkflowResult`.

        Raises:
            WorkflowError: it is missing, malformed, or failed; the text says where and why in a few lines.
        """


@cache
def engines() -> tuple[type[Workflow], ...]:
    """The workflows of all engines: one for each module of their package, in the order of their names."""
    for module in iter_modules(import_module(_ENGINES).__path__, f"{_ENGINES}."):
        if not module.ispkg:
            import_module(module.name)
    found = (one for one in Workflow.__subclasses__() if one.__module__.startswith(f"{_ENGINES}."))
    return tuple(sorted(found, key=lambda declared: declared.__module__))
