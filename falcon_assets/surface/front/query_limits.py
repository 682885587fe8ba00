"""How large a GraphQL document may be: a few bytes can ask for billions of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphql import (
    ASTValidationRule,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
)

DEPTH = 15
"""Levels of fields; the pages of Dagster's UI have up to 14."""
ALIASES = 60
FIELDS = 20_000
"""Fields of an operation, where each use of a fragment counts."""
MUTATIONS = 5
"""Mutations of one request."""


@dataclass(frozen=True)
class _Size:
    depth: int = 0
    aliases: int = 0
    fields: int = 0


_CYCLE = _Size()
"""Of a fragment in itself, which another rule refuses."""


class SizeRule(ASTValidationRule):
    """Refuses operations that are too deep, or have too many aliases, fields or mutations."""

    def enter_document(self, node: DocumentNode, *_: Any) -> Any:
        fragments = {one.name.value: one for one in node.definitions if isinstance(one, FragmentDefinitionNode)}
        known: dict[str, _Size] = {}
        for one in node.definitions:
            if isinstance(one, OperationDefinitionNode):
                self._check(one, _size(one.selection_set, fragments, known))
        return self.SKIP  # other rules go through the rest

    def _check(self, operation: OperationDefinitionNode, size: _Size) -> None:
        changes = len(operation.selection_set.selections) if operation.operation is OperationType.MUTATION else 0
        for what, number, most in (
            ("levels", size.depth, DEPTH),
            ("aliases", size.aliases, ALIASES),
            ("fields", size.fields, FIELDS),
            ("mutations", changes, MUTATIONS),
        ):
            if number > most:
                self.report_error(GraphQLError(f"the operation has more than {most} {what}", operation))


def _size(node: SelectionSetNode, fragments: dict[str, FragmentDefinitionNode], known: dict[str, _Size]) -> _Size:
    """Each fragment is counted once, and its size used wherever it is spread."""
    depth = aliases = fields = 0
    for one in node.selections:
        below = _CYCLE
        if isinstance(one, FragmentSpreadNode):
            name = one.name.value
            if name not in known and name in fragments:
                known[name] = _CYCLE
                known[name] = _size(fragments[name].selection_set, fragments, known)
            below = known.get(name, _CYCLE)
        elif isinstance(one, InlineFragmentNode):
            below = _size(one.selection_set, fragments, known)
        elif isinstance(one, FieldNode):
            if one.selection_set is not None and not one.name.value.startswith("__"):
                below = _size(one.selection_set, fragments, known)
            below = _Size(below.depth + 1, below.aliases + (one.alias is not None), below.fields + 1)
        depth, aliases, fields = max(depth, below.depth), aliases + below.aliases, fields + below.fields
    return _Size(depth, aliases, fields)
