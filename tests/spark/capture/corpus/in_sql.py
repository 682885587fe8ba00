"""Programs in SQL: the views ``a`` and ``b`` are the inputs, the last statement is the output."""

from __future__ import annotations

from tests.spark.capture.corpus.world import Program, World

PROGRAMS: list[Program] = []


def sql(
    name: str, text: str, rows: str, /, *, reads: str = "", writes: str = "", unread: str = "", **columns: str
) -> None:
    """Adds a program; ``{place}`` in it is the URL of the folder of all data."""

    def run(world: World) -> object:
        found = None
        for statement in text.split(";;"):
            found = world.spark.sql(statement.replace("{place}", world.url("")))
        return found

    PROGRAMS.append(Program(name, run, columns, rows, reads, writes, unread))  # type: ignore[arg-type]


sql("inner join", "SELECT a.k, a.v, b.n FROM a JOIN b ON a.k = b.k", "a.k b.k", k="a.k", v="a.v", n="b.n")
sql("using", "SELECT k, w, n FROM a LEFT JOIN b USING (k)", "a.k b.k", k="a.k", w="a.w", n="b.n")
sql("natural join", "SELECT * FROM b NATURAL JOIN (SELECT k, v FROM a)", "a.k b.k", k="b.k", n="b.n", v="a.v")
sql("semi join", "SELECT v FROM a LEFT SEMI JOIN b ON a.k = b.k", "a.k b.k", v="a.v")
sql("anti join", "SELECT v FROM a LEFT ANTI JOIN b ON a.k = b.n", "a.k b.n", v="a.v")
sql(
    "aggregate",
    "SELECT k, sum(v) AS total, count(*) AS n FROM a GROUP BY k HAVING max(w) > 0",
    "a.k a.w",
    unread="b",
    k="a.k",
    total="a.v",
    n="",
)
sql(
    "rollup", "SELECT k, v, sum(w) AS t FROM a GROUP BY ROLLUP (k, v)", "a.k a.v", unread="b", k="a.k", v="a.v", t="a.w"
)
sql(
    "pivot",
    "SELECT * FROM (SELECT k, v, w FROM a) PIVOT (sum(v) AS s FOR w IN (2 AS two))",
    "a.k",
    unread="b",
    k="a.k",
    two="a.v a.w",
)
sql(
    "unpivot",
    "SELECT k, name, value FROM (SELECT k, v, w FROM a) UNPIVOT (value FOR name IN (v, w))",
    "a.v a.w",
    unread="b",
    k="a.k",
    name="",
    value="a.v a.w",
)
sql(
    "window",
    "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY w) AS run FROM a",
    "",
    unread="b",
    k="a.k",
    run="a.k a.v a.w",
)
sql(
    "first of each",
    "SELECT k FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY w) AS r FROM a) WHERE r = 1",
    "a.k a.w",
    unread="b",
    k="a.k",
)
sql(
    "case", "SELECT CASE WHEN v > 1 THEN n ELSE 'none' END AS label FROM a JOIN b USING (k)", "a.k b.k", label="a.v b.n"
)
sql(
    "explode",
    "SELECT k, item FROM a LATERAL VIEW explode(items) t AS item",
    "a.items",
    unread="b",
    k="a.k",
    item="a.items",
)
sql(
    "explode in the list",
    "SELECT posexplode_outer(items) AS (at, item) FROM a",
    "a.items",
    unread="b",
    at="a.items",
    item="a.items",
)
sql("inline", "SELECT x FROM a LATERAL VIEW inline(array(s)) t AS x, y", "a.s", unread="b", x="a.s")
sql("cte", "WITH x AS (SELECT k, v AS y FROM a WHERE w > 0) SELECT y + 1 AS y FROM x", "a.w", unread="b", y="a.v")
sql(
    "recursive cte",
    "WITH RECURSIVE r(k, n) AS (SELECT k, v FROM a UNION ALL SELECT k, n + 1 FROM r WHERE n < 3) SELECT k, n FROM r",
    "a.v",
    unread="b",
    k="a.k",
    n="a.v",
)
sql("union", "SELECT k, v FROM a UNION ALL SELECT k, length(n) FROM b", "", k="a.k b.k", v="a.v b.n")
sql("except", "SELECT k FROM a EXCEPT SELECT n FROM b", "a.k b.n", k="a.k")
sql("intersect", "SELECT k FROM a INTERSECT SELECT k FROM b", "a.k b.k", k="a.k b.k")
sql("in", "SELECT v FROM a WHERE k IN (SELECT n FROM b)", "a.k b.n", v="a.v")
sql("pairs in", "SELECT v FROM a WHERE (k, 'ex') IN (SELECT k, n FROM b)", "a.k b.k b.n", v="a.v")
sql("pairs not in", "SELECT w FROM a WHERE (k, k) NOT IN (SELECT n, k FROM b)", "a.k b.k b.n", w="a.w")
sql("exists", "SELECT v FROM a WHERE EXISTS (SELECT n FROM b WHERE b.k = a.k)", "a.k b.k", v="a.v")
sql("scalar", "SELECT v, (SELECT max(n) FROM b) AS top FROM a", "", v="a.v", top="b.n")
sql("lateral join", "SELECT a.v, t.n FROM a, LATERAL (SELECT n FROM b WHERE b.k = a.k) t", "a.k b.k", v="a.v", n="b.n")
sql("field", "SELECT s.x AS x FROM a", "", unread="b", x="a.s")
sql(
    "field of a made structure",
    "SELECT t.v AS one FROM (SELECT named_struct('v', v, 'w', w) AS t FROM a)",
    "",
    unread="b",
    one="a.v",
)
sql("filter by a field", "SELECT k FROM (SELECT k, struct(v, w) AS t FROM a) WHERE t.w > 0", "a.w", unread="b", k="a.k")
sql("lambda", "SELECT transform(items, x -> x + v) AS more FROM a", "", unread="b", more="a.items a.v")
sql("distinct", "SELECT DISTINCT k, v FROM a", "a.k a.v", unread="b", k="a.k", v="a.v")
sql("top", "SELECT k FROM a ORDER BY w LIMIT 1", "a.w", unread="b", k="a.k")
sql("constants", "SELECT k, d FROM a JOIN (VALUES ('x', 1)) AS t(kk, d) ON k = kk", "a.k", unread="b", k="a.k", d="")
sql("range", "SELECT id, v FROM range(3) JOIN a ON id = v", "a.v", unread="b", id="", v="a.v")
sql("listagg", "SELECT listagg(n, ',') WITHIN GROUP (ORDER BY k) AS all FROM b", "", unread="a", all="b.k b.n")
sql(
    "views",
    "CREATE TEMP VIEW x AS SELECT k, v + w AS vw FROM a;; SELECT k, vw * 2 AS d FROM x",
    "",
    unread="b",
    k="a.k",
    d="a.v a.w",
)
sql(
    "cache",
    "CACHE TABLE c AS SELECT k, max(v) AS top FROM a GROUP BY k;; SELECT n, top FROM c JOIN b USING (k)",
    "a.k b.k",
    n="b.n",
    top="a.v",
)
sql(
    "function",
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + (SELECT count(n) FROM b);; SELECT f(v) AS y FROM a",
    "",
    y="a.v b.n",
)
sql(
    "files by path",
    "SELECT label FROM parquet.`{place}data/names/05`",
    "",
    reads="names",
    unread="a b",
    label="names.label",
)
sql(
    "place by path",
    "SELECT p, v FROM parquet.`{place}data/place` JOIN a USING (k)",
    "a.k place.k",
    reads="place",
    unread="b",
    p="place.p",
    v="a.v",
)
sql(
    "variable as a column",
    "DECLARE top INT;; SET VAR top = (SELECT max(v) FROM a);; SELECT n, top AS t FROM b",
    "",
    n="b.n",
    t="a.v",
)
sql(
    "variable in a filter",
    "DECLARE low INT;; SET VAR low = (SELECT min(v) FROM a);; SELECT n FROM b WHERE length(n) > low",
    "a.v b.n",
    n="b.n",
)
sql(
    "table in scratch",
    "DROP TABLE IF EXISTS scratch_t;; CREATE TABLE scratch_t USING parquet LOCATION "
    "'{place}working/t' AS SELECT k, v AS vv FROM a WHERE w > 0;; SELECT vv FROM scratch_t",
    "a.w",
    unread="b",
    vv="a.v",
)
sql(
    "insert into a table",
    "DROP TABLE IF EXISTS kept_t;; CREATE TABLE kept_t (k STRING) USING parquet LOCATION "
    "'{place}data/kept';; INSERT INTO kept_t SELECT k FROM b;; SELECT v FROM a",
    "",
    writes="kept",
    v="a.v",
)
sql(
    "directory",
    "INSERT OVERWRITE DIRECTORY '{place}data/dir' USING parquet SELECT n FROM b;; SELECT v FROM a",
    "",
    writes="dir",
    v="a.v",
)
