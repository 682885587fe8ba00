"""Values that people write as a text of one of the small languages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema


class TextValue(ABC):
    """A field of a declaration that is read by ``parse`` and written by ``str``."""

    JSON_SCHEMA: ClassVar[dict[str, Any]]
    """Constraints of the text, for editors."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Reads the text.

        Raises:
            ExpressionError: it is not legal.
        """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def validate(value: Any) -> TextValue:
            return value if isinstance(value, cls) else cls.parse(str(value))

        return core_schema.no_info_plain_validator_function(
            validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", **cls.JSON_SCHEMA}
