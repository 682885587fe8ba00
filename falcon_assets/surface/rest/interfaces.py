"""All interfaces for programs, as a front serves them."""

from __future__ import annotations

from starlette.routing import BaseRoute, Mount

from falcon_assets.surface.rest.falcon.paths import falcon_routes
from falcon_assets.surface.rest.gobblin import gobblin_routes
from falcon_assets.surface.rest.openapi import PREFIX
from falcon_assets.surface.rest.routes import routes
from falcon_assets.surface.served import ServedInstallation


def interfaces(served: ServedInstallation) -> list[BaseRoute]:
    """REST below its prefix, Apache Falcon's own paths, and Gobblin's; ``scope["user"]`` says who asks."""
    return [Mount(PREFIX, routes=routes(served)), *falcon_routes(served), *gobblin_routes(served)]
