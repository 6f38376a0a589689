SELECT a.o_id, b.o_id AS other FROM shop.orders a JOIN shop.orders b ON a.note <=> b.note AND a.o_id IS NOT DISTINCT FROM b.o_id
