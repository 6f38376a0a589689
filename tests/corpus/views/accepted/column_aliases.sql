SELECT t.b, s.x FROM geo.cities AS t (a, b, c, d, e) JOIN (SELECT region_id, area * 2 FROM geo.regions) AS s (r, x) ON t.b = s.r WHERE a > 1
