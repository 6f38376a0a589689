"""The body of the algebra that runs on Spark, and the only package that imports pyspark.

One duty: relations as lazy DataFrames, and the session they live in. It must not know protocols,
sources, or where a relation's rows came from. Begin with `relation`, the algebra on Spark, and `staged`,
rows that are still here; `session` starts and ends the JVM. `gate` judges the SQL of readers.

Nothing is imported here: a command that needs no Spark must not pay for loading it.
"""
