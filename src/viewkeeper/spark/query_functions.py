"""The functions that a query may call: those that compute from their arguments alone.

Left out, though Spark has them: what calls Java (`reflect`), reads files or descriptors (`from_protobuf`,
`from_avro`, `input_file_name`, XML with its entities), tells of the machine or the session (`version`,
`current_user`, `current_catalog`), raises errors of the caller's making (`raise_error`, which would pass
for one of ours), and whatever a later Spark adds.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and
    bool_or collect_list collect_set corr count count_if covar_pop covar_samp every first first_value
    grouping grouping_id kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum
    try_avg try_sum var_pop var_samp variance
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number

    array array_append array_compact array_contains array_distinct array_except array_insert array_intersect
    array_join array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_union arrays_overlap arrays_zip flatten get sequence shuffle slice sort_array cardinality concat
    element_at reverse size try_element_at aggregate array_sort exists filter forall map_filter map_zip_with
    reduce transform transform_keys transform_values zip_with map map_concat map_contains_key map_entries
    map_from_arrays map_from_entries map_keys map_values str_to_map named_struct struct

    between coalesce if ifnull nanvl nullif nullifzero nvl nvl2 when zeroifnull equal_null ilike in isnan
    isnotnull isnull like not regexp regexp_like rlike and or ! < <= <=> = == > >=
    bigint binary boolean cast date decimal double float int smallint string timestamp tinyint typeof

    add_months convert_timezone curdate current_date current_timestamp current_timezone date_add date_diff
    date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname
    dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day localtimestamp
    make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_ym_interval minute month monthname months_between next_day now quarter second timestamp_micros
    timestamp_millis timestamp_seconds to_date to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds
    unix_timestamp weekday weekofyear year

    & << >> >>> ^ bit_count bit_get getbit shiftleft shiftright shiftrightunsigned | ~ % * + - /
    abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees div
    e exp expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod positive
    pow power radians rand randn random rint round sec sign signum sin sinh sqrt tan tanh try_add try_divide
    try_mod try_multiply try_subtract unhex uniform uuid width_bucket crc32 hash md5 sha sha1 sha2 xxhash64

    ascii base64 bit_length btrim char char_length character_length chr collate collation concat_ws contains
    decode elt encode endswith find_in_set format_number format_string initcap instr is_valid_utf8 lcase left
    len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay
    position printf quote randstr regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace
    regexp_substr repeat replace right rpad rtrim soundex space split split_part startswith substr substring
    substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number
    try_validate_utf8 ucase unbase64 upper validate_utf8 parse_url try_parse_url try_url_decode url_decode
    url_encode

    from_csv schema_of_csv to_csv from_json get_json_object json_array_length json_object_keys json_tuple
    schema_of_json to_json is_valid_variant is_variant_null parse_json schema_of_variant to_variant_object
    try_parse_json try_variant_get variant_get
    explode explode_outer inline inline_outer posexplode posexplode_outer stack
    """
)

# Those of them that may stand in FROM, and the one that stands nowhere else.
TABLE_FUNCTIONS = _words(
    """
    range explode explode_outer inline inline_outer posexplode posexplode_outer stack json_tuple
    """
)
