import pytest


@pytest.fixture(
    params=[
        "bag",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ]
)
def embody(request):
    """Turns a bag into the body of the algebra under test."""
    if request.param == "bag":
        return lambda bag: bag
    spark = request.getfixturevalue("spark")
    from viewkeeper.spark.relation import SparkRelation

    # One embodiment per session of Spark: the sources' change rows must be of the same body too.
    return lambda bag: SparkRelation.from_bag(spark, bag)
