"""Dagster's webserver with own routes before its own, and with all that changes something asked for by a guard.

What is overridden has no underscore, but is not documented either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from inspect import isawaitable
from pathlib import Path
from typing import Any, Protocol

import dagster as dg
from dagster._core.workspace.load_target import WorkspaceFileTarget  # what dagster-webserver makes of -w
from dagster_graphql.schema.errors import GrapheneUnauthorizedError  # what the UI understands as a refusal
from dagster_webserver.webserver import DagsterWebserver  # the webserver itself, as a class
from graphql import (
    ASTValidationRule,
    GraphQLError,
    GraphQLSchema,
    get_named_type,
    parse,
    specified_rules,
    validate,
)
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from falcon_assets.errors import DeniedError
from falcon_assets.history.dagster_internals.permissions import ProcessContext, RequestContext

_STATEMENT_MILLISECONDS, _RECYCLE_SECONDS, _OVERFLOW = 15_000, 3_600, 20
"""The defaults of dagster-webserver."""
_POLL_MILLISECONDS = 2_000
Arguments = Mapping[str, Any]


class MutationGuard(Protocol):
    """Is asked about each mutation, in the thread of its request."""

    async def __call__(
        self, context: RequestContext, mutation: str, arguments: Arguments, go_on: Callable[[], Awaitable[str]]
    ) -> None:
        """Performs the mutation by ``go_on``, which returns the type of its result; raises DeniedError."""


class Webserver(DagsterWebserver[ProcessContext, RequestContext]):
    """The webserver of one process.

    Attributes:
        before: Routes that come before Dagster's, which answer every path.
        middleware: Pure ASGI middleware, the outermost first.
        rules: Rules for GraphQL documents besides GraphQL's own.
    """

    def __init__(
        self,
        context: ProcessContext,
        guard: MutationGuard,
        before: Sequence[BaseRoute],
        middleware: Sequence[Middleware],
        rules: Sequence[type[ASTValidationRule]],
        path_prefix: str = "",
    ) -> None:
        self.guard, self.before, self.middleware, self.rules = guard, before, middleware, rules
        super().__init__(context, path_prefix, live_data_poll_rate=_POLL_MILLISECONDS)

    def build_graphql_schema(self) -> Any:  # of graphene, which has no types
        schema = super().build_graphql_schema()
        _guard_mutations(schema.graphql_schema, self.guard)
        return schema

    def build_graphql_validation_rules(self) -> Collection[type[ASTValidationRule]]:
        return [*self.rules, *specified_rules]

    async def execute_graphql_subscription(
        self,
        websocket: WebSocket,
        operation_id: str,
        query: str,
        variables: dict[str, Any] | None,
        operation_name: str | None,
    ) -> Any:
        """Dagster does not validate what comes by a websocket."""
        try:
            rules = self.build_graphql_validation_rules()
            problems = validate(self._graphene_schema.graphql_schema, parse(query), rules)
        except GraphQLError as error:
            problems = [error]
        if problems:
            return None, problems[0].formatted
        return await super().execute_graphql_subscription(websocket, operation_id, query, variables, operation_name)

    def build_middleware(self) -> list[Middleware]:
        return [*self.middleware, *super().build_middleware()]

    def build_routes(self) -> list[BaseRoute]:
        theirs: list[BaseRoute] = super().build_routes()  # type: ignore[no-untyped-call]
        return [*self.before, *theirs]


def make_app(webserver: Webserver, **options: Any) -> Starlette:
    return webserver.create_asgi_app(**options)


def process_context(instance: dg.DagsterInstance, workspace: Path, version: str) -> ProcessContext:
    """The code locations of a ``workspace.yaml``, as a context manager; ``instance`` is made fit for a webserver."""
    instance.optimize_for_webserver(_STATEMENT_MILLISECONDS, _RECYCLE_SECONDS, _OVERFLOW)
    return ProcessContext(instance, WorkspaceFileTarget(paths=[str(workspace)]), version=version)


def _guard_mutations(schema: GraphQLSchema, guard: MutationGuard) -> None:
    assert schema.mutation_type is not None
    for name, field in schema.mutation_type.fields.items():
        resolve = field.resolve
        assert resolve is not None
        types = getattr(get_named_type(field.type), "types", ())
        tells = any(one.name == "UnauthorizedError" for one in types)
        field.resolve = _guarded(name, resolve, guard, tells=tells)


def _guarded(name: str, resolve: Callable[..., Any], guard: MutationGuard, *, tells: bool) -> Callable[..., Any]:
    async def guarded(root: Any, info: Any, **arguments: Any) -> Any:
        result: Any = None

        async def go_on() -> str:
            nonlocal result
            result = resolve(root, info, **arguments)
            if isawaitable(result):
                result = await result
            return type(result).__name__.removeprefix("Graphene")

        try:
            await guard(info.context, name, arguments, go_on)
        except DeniedError as error:
            if tells:
                return GrapheneUnauthorizedError(str(error))  # type: ignore[no-untyped-call]
            raise GraphQLError(str(error)) from None
        return result

    return guarded
