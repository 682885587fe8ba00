"""What drivers of stores refuse, said so that a person can mend it, and without what is secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from falcon_assets.errors import FalconError, StorageError
from falcon_assets.storage.explain import explained


@contextmanager
def driver_explained(cluster: str, doing: str) -> Iterator[None]:
    """As :func:`explained`, for stores whose drivers raise anything: their other exceptions are named, never quoted.

    Args:
        cluster: Name of the cluster.
        doing: What is being done, after "cannot".

    Raises:
        StorageError: instead of every exception that is not one of ours.
    """
    try:
        with explained(cluster, doing):
            yield
    except FalconError:
        raise
    except Exception as error:
        raise StorageError(
            f"cluster {cluster!r}: cannot {doing} ({type(error).__name__}): "
            "check the endpoints and their storage_options"
        ) from None
