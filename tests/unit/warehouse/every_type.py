"""A schema with a column of every kind."""

from viewkeeper.algebra.types import Field, Kind, Schema, Type, decimal_type

EVERY_TYPE = Schema(
    tuple(
        Field(f"a.{kind.value}", decimal_type(38, 9) if kind is Kind.DECIMAL else Type(kind))
        for kind in Kind
    )
)
