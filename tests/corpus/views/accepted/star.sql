SELECT * FROM geo.cities
