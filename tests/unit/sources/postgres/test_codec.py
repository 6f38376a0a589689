import pytest

from viewkeeper.algebra.types import decimal_type
from viewkeeper.sources.postgres.codec import Codec, ColumnType, codec_for
from viewkeeper.sources.postgres.setup import instance_name, literal
from viewkeeper.sources.urls import parse_source_url


def numeric(precision, scale):
    return ColumnType("pg_catalog.numeric", "b", ((precision << 16) | (scale & 0x7FF)) + 4)


def test_decimals_keep_their_precision_and_scale():
    codec = codec_for(numeric(12, 3))
    assert isinstance(codec, Codec)
    assert codec.type == decimal_type(12, 3)


@pytest.mark.parametrize("column", [numeric(39, 2), numeric(3, 5), numeric(3, -2)])
def test_decimals_that_do_not_fit_are_refused_with_their_own_figures(column):
    reason = codec_for(column)
    assert isinstance(reason, str)
    assert "numeric(" in reason


def test_arrays_are_as_good_as_their_elements():
    def array(element, category="b"):
        return codec_for(ColumnType("pg_catalog._x", "b", -1, element, category))

    assert isinstance(array("pg_catalog.int4"), Codec)
    assert isinstance(array("pg_catalog.numeric"), Codec)
    assert isinstance(array("public.colour", "e"), Codec)
    assert isinstance(array("pg_catalog.point"), str)


def test_types_of_extensions_are_refused_by_name():
    reason = codec_for(ColumnType("public.geometry", "b", -1))
    assert isinstance(reason, str)
    assert "public.geometry" in reason


def test_text_becomes_a_constant_that_stays_one():
    assert literal("it's") == "'it''s'"
    assert literal("a\\'b") == " E'a\\\\''b'"


def test_our_name_at_the_server_is_made_of_safe_characters_only():
    url = parse_source_url("postgresql://h/d", "Shop")
    assert instance_name("Shop", url) == "viewkeeper_shop"
    assert instance_name('a"; DROP', url) == "viewkeeper_a___drop"
