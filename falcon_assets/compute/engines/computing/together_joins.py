"""Outer joins and subqueries of a query, for many instances: Spark does not correlate both sides of them by itself.

A SELECT with them reads the rows of all instances, each source with a key of its own, which joins and subqueries
compare; only its WHERE asks for one instance. So Spark correlates nothing but what is above all joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

INSTANCES, KEY = "falcon_instances", "falcon_instance"
"""The table of instances, and the column with the number of an instance: in it, in inputs, and in the result."""
_OTHERS = "outer joins and subqueries are of more than inputs, and queries with GROUP BY on them"


class AloneError(Exception):
    """Instances have to be computed one by one; the text says why."""


def view_of(name: str) -> str:
    return f"falcon_rows_of_{name}"


def is_joined(tree: Any) -> bool:
    """Whether a query has what needs :func:`joined`; raises AloneError."""
    return any(map(_is_needed, _blocks(tree)))


def joined(tree: Any) -> Any:
    """The query for the rows of one of the instances, as a tree; raises AloneError."""
    from sqlglot import exp

    made = tree.copy()
    with_ = made.args.get("with_") or made.args.get("with")
    named = {one.alias.lower(): one for one in with_.expressions} if with_ else {}
    if any(not any(one is known for known in named.values()) for one in made.find_all(exp.CTE)):
        raise AloneError("it has WITH within a query")
    keys = _Keys({name: one.this.copy() for name, one in named.items()})
    for block in [one for one in _blocks(made) if _is_needed(one)]:
        within = block.find_ancestor(exp.CTE)
        _narrow(block, f"{keys.of(block, keys.before(within.alias if within else None))} = {INSTANCES}.`{KEY}`")
    return made


class _Keys:
    """Gives each source of a SELECT a key of its own; ``named`` are queries of WITH, in order."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named, self._numbers = named, count()

    def before(self, name: str | None) -> Mapping[str, Any]:
        """Those that a query of WITH may name; None: all."""
        names = list(self._named)
        return {one: self._named[one] for one in names[: names.index(name.lower()) if name else None]}

    def of(self, block: Any, named: Mapping[str, Any]) -> str:
        """Compares the keys in joins and subqueries; returns the key of a row of the block."""
        from sqlglot import exp

        inner = _inner(block)
        first = block.args.get("from_") or block.args.get("from")
        if first is None:
            raise AloneError(_OTHERS)
        key = self._source(first.this, named, f"{KEY}_{next(self._numbers)}")
        shown = [key]
        for join in block.args.get("joins") or ():
            if join.args.get("method"):
                raise AloneError(f"it has a {join.args['method']} JOIN beside outer joins or subqueries")
            if join.args.get("using"):  # one column for both sides, whatever the join
                if "(" in key:
                    raise AloneError("it joins by USING after a FULL JOIN")
                self._source(join.this, named, key)
                join.append("using", _identifier(key))
                continue
            own = self._source(join.this, named, f"{KEY}_{next(self._numbers)}")
            if join.kind == "CROSS":
                join.set("kind", None)
            join.set("on", _both(join.args.get("on"), f"{own} = {key}"))
            shown += [] if join.kind in ("SEMI", "ANTI") else [own]
            key = {"RIGHT": own, "FULL": f"coalesce({key}, {own})"}.get(join.side, key)
        for one in inner:
            if any(one.args.get(name) for name in ("limit", "offset")):
                raise AloneError("it limits a subquery")
            above = one.parent.parent if isinstance(one.parent, exp.Subquery) else one.parent
            if isinstance(above, exp.In | exp.Exists) and not one.args.get("group") and _aggregates(one):
                raise AloneError("a condition has a subquery with an aggregate without GROUP BY")
            _narrow(one, f"{self.of(one, named)} = {key}")
        _leave_out(block, shown)
        return key

    def _source(self, source: Any, named: Mapping[str, Any], own: str) -> str:
        """Has a source bring its key along as ``own``."""
        from sqlglot import exp

        if any(source.args.get(name) for name in ("sample", "pivots", "joins", "laterals")):
            raise AloneError(_OTHERS)
        if isinstance(source, exp.Subquery) and source.alias:
            self._query(source.this, named, own)
        elif isinstance(source, exp.Table) and not source.db and source.name.lower() in named:
            made = exp.Subquery(
                this=named[source.name.lower()].copy(),
                alias=exp.TableAlias(this=_identifier(source.alias or source.name)),
            )
            source.replace(made)
            self._query(made.this, self.before(source.name), own)
        elif isinstance(source, exp.Table) and not source.db and source.name:
            view = exp.to_table(f"`{view_of(source.name)}`", dialect="spark")
            rows = exp.select(f"* EXCEPT (`{KEY}`)", f"`{KEY}` AS {own}", dialect="spark").from_(view)
            source.replace(rows.subquery(_identifier(source.alias or source.name)))
        else:
            raise AloneError(_OTHERS)
        return own

    def _query(self, block: Any, named: Mapping[str, Any], own: str) -> None:
        """Has a SELECT bring its key along as its last column, whose rows are those of one key each."""
        from sqlglot import exp

        others = ("with_", "with", "limit", "offset", "order", "windows", "qualify")
        if not isinstance(block, exp.Select) or any(block.args.get(name) for name in others):
            raise AloneError(_OTHERS)
        mine = _aggregates(block)
        if any(isinstance(one, exp.Window) or isinstance(one.parent, exp.Window) for one in mine):
            raise AloneError(_OTHERS)
        group = block.args.get("group")
        if (mine or block.args.get("having")) and group is None:
            raise AloneError(_OTHERS)
        key = self.of(block, named)
        if group is not None:
            in_ways = any(value for name, value in group.args.items() if name != "expressions")
            if not group.expressions or in_ways:
                raise AloneError(_OTHERS)
            group.append("expressions", _parsed(key))
        block.append("expressions", exp.alias_(_parsed(key), own))


def _blocks(tree: Any) -> Iterator[Any]:
    """Every SELECT that is a source or a query, and no condition or value; not those within one that is joined."""
    from sqlglot import exp

    apart = set[int]()
    for block in tree.find_all(exp.Select):  # from above
        above = block.parent
        while above is not None and id(above) not in apart and not isinstance(above, exp.CTE):
            above = above.parent
        if above is not None and not isinstance(above, exp.CTE):
            continue
        yield block
        if _is_needed(block):
            apart |= {id(block)}
        apart |= {id(one) for one in _inner(block)}


def _is_needed(block: Any) -> bool:
    return bool(_inner(block)) or any(one.side or one.kind in ("SEMI", "ANTI") for one in block.args.get("joins") or ())


def _inner(block: Any) -> list[Any]:
    """The subqueries in conditions and values of a SELECT; raises AloneError."""
    from sqlglot import exp

    found = []
    for one in block.find_all(exp.Query):
        if one is block or isinstance(one, exp.Subquery) or one.find_ancestor(exp.Select) is not block:
            continue
        above = one
        while isinstance(above.parent, exp.Subquery):
            above = above.parent
        if isinstance(above.parent, exp.From | exp.Join | exp.Lateral | exp.SetOperation | exp.CTE):
            continue
        if not isinstance(one, exp.Select):
            raise AloneError("it has a set operation in a condition")
        found.append(one)
    return found


def _aggregates(block: Any) -> list[Any]:
    """The aggregates and windows of a SELECT."""
    from sqlglot import exp

    return [one for one in block.find_all(exp.AggFunc, exp.Window) if one.find_ancestor(exp.Select) is block]


def _leave_out(block: Any, keys: list[str]) -> None:
    from sqlglot import exp

    for star in [one for one in block.expressions if one.is_star]:
        if isinstance(star, exp.Column):
            raise AloneError("it has all columns of one of several tables in its result")
        known = star.args.get("except_") or star.args.get("except") or []
        star.set("except_", [*known, *map(_identifier, keys)])


def _identifier(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name, quoted=True)


def _parsed(sql: str) -> Any:
    import sqlglot

    return sqlglot.parse_one(sql, read="spark")


def _narrow(block: Any, condition: str) -> None:
    from sqlglot import exp

    where = block.args.get("where")
    block.set("where", exp.Where(this=_both(where.this if where else None, condition)))


def _both(before: Any, condition: str) -> Any:
    from sqlglot import exp

    more = _parsed(condition)
    return more if before is None else exp.And(this=exp.Paren(this=before), expression=more)
