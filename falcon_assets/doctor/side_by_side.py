"""Questions that may never be answered, all asked in parallel."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def side_by_side(questions: Mapping[K, Callable[[], T]], seconds: float) -> dict[K, T]:
    """Returns the answers within ``seconds``, in total; late ones go on in daemon threads. Questions must not raise."""
    answers: queue.SimpleQueue[tuple[K, T]] = queue.SimpleQueue()

    def asking(name: K, question: Callable[[], T]) -> Callable[[], None]:
        return lambda: answers.put((name, question()))

    for name, question in questions.items():
        threading.Thread(target=asking(name, question), name=f"doctor {name}", daemon=True).start()
    found: dict[K, T] = {}
    end = time.monotonic() + seconds
    while len(found) < len(questions):
        try:
            name, answer = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[name] = answer
    return found
