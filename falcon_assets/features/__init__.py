"""Features: a folder for each thing that the product does beyond running instances that are ready."""

import os


def is_there(feature: str) -> bool:
    """Whether its folder is there; nothing of it is imported."""
    return any(os.path.isfile(os.path.join(one, feature, "__init__.py")) for one in __path__)  # noqa: PTH113, PTH118 - at every start
