WITH near (id, region) AS (SELECT city_id, region_id FROM geo.cities WHERE people > 1)
SELECT a.id, b.id AS neighbour FROM near a JOIN near b ON a.region = b.region AND a.id < b.id
