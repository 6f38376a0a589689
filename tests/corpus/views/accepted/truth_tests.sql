SELECT o_id, paid IS TRUE AS yes, paid IS NOT FALSE AS maybe FROM shop.orders WHERE (qty > 2) IS NOT TRUE
