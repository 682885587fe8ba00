"""The schemas of Avro's files are put together by name, or the first file that does not fit is named."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from falcon_assets.compute.spark.data.schemas import merged

LONG, TEXT = LongType(), StringType()


def struct(**fields: LongType | StringType | StructType | ArrayType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def test_columns_of_both_by_name() -> None:
    before, found = struct(a=LONG, s=struct(x=LONG)), struct(b=TEXT, A=LONG, S=struct(y=TEXT, X=LONG))
    assert merged(before, found) == (struct(a=LONG, s=struct(x=LONG, y=TEXT), b=TEXT), [])
    assert merged(StructType(), found) == (found, [])


def test_all_may_be_null_as_files_may_lack_them() -> None:
    known, _ = merged(StructType(), StructType([StructField("a", LONG, nullable=False)]))
    assert known == struct(a=LONG)
    inner = StructType([StructField("s", StructType([StructField("x", LONG, nullable=False)]))])
    assert merged(inner, struct(s=struct(y=LONG)))[0] == struct(s=struct(x=LONG, y=LONG))


def test_other_types_are_told() -> None:
    before = struct(a=LONG, s=struct(x=LONG), l=ArrayType(struct(z=LONG)))
    found = struct(a=TEXT, s=struct(x=TEXT), l=ArrayType(struct(z=TEXT)))
    names = [("a", "bigint", "string"), ("s.x", "bigint", "string"), ("l.z", "bigint", "string")]
    assert merged(before, found)[1] == names
