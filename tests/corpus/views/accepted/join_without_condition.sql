SELECT r.rname, c.cname FROM geo.regions r JOIN geo.cities c
