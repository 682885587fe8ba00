"""A datasource as programs reach it: with its secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from falcon_assets.catalog.references import value_of
from falcon_assets.errors import DatasourceError
from falcon_assets.model.datasource import Datasource, DatasourceThrottle
from falcon_assets.model.reference import Reference
from falcon_assets.settings import home_folder


@dataclass(frozen=True)
class Access:
    """What workers of Spark need to reach a datasource; it can be pickled, and shows no secrets.

    Attributes:
        driver: Options of the driver.
        home: FALCON_HOME, for relative paths.
    """

    name: str
    type: str
    endpoint: str
    throttle: DatasourceThrottle
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    driver: Mapping[str, str] = field(default_factory=dict, repr=False)
    home: Path = Path()


def access_to(datasource: Datasource, environ: Mapping[str, str], *, write: bool) -> Access:
    """Reads its secrets, which are hidden in all texts from now on.

    Raises:
        DatasourceError: it has no such interface, or a variable is not set.
        SecretError: a value cannot be decrypted.
    """
    interface = datasource.interface(write=write)
    if interface is None:
        raise DatasourceError(f"datasource {datasource.name!r} has no interface to write: declare interfaces.write")
    credential = datasource.credential(write=write)

    def known(said: Reference | str | None) -> str | None:
        if said is None or isinstance(said, str):
            return said
        value = value_of(said, environ)
        if value is None:
            raise DatasourceError(f"datasource {datasource.name!r} needs {said}, which is not set")
        return value

    return Access(
        datasource.name,
        datasource.type,
        interface.endpoint,
        datasource.throttle,
        known(credential.user),
        known(credential.password),
        known(credential.token),
        known(credential.private_key),
        {key: known(said) or "" for key, said in datasource.driver.items()},
        home_folder(environ),
    )
