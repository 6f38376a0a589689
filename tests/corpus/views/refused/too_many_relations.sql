WITH a AS (SELECT x.o_id FROM shop.orders x JOIN shop.lines y USING (o_id)),
  b AS (SELECT x.o_id FROM a x JOIN a y ON x.o_id = y.o_id),
  c AS (SELECT x.o_id FROM b x JOIN b y ON x.o_id = y.o_id),
  d AS (SELECT x.o_id FROM c x JOIN c y ON x.o_id = y.o_id),
  e AS (SELECT x.o_id FROM d x JOIN d y ON x.o_id = y.o_id),
  f AS (SELECT x.o_id FROM e x JOIN e y ON x.o_id = y.o_id),
  g AS (SELECT x.o_id FROM f x JOIN f y ON x.o_id = y.o_id)
SELECT o_id FROM g
