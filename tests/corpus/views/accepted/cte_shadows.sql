WITH x AS (SELECT o_id AS id FROM shop.orders), y AS (SELECT id FROM x WHERE id > 2)
SELECT outer_y.id FROM (WITH x AS (SELECT city_id AS id FROM geo.cities) SELECT x.id FROM x JOIN y ON x.id = y.id) AS outer_y
