"""SELECT, GROUP BY and HAVING: `outputs` of a term, its `aggregation`, joins to what was grouped (`regrouping`)."""
