SELECT qty FROM shop.orders JOIN (SELECT name AS qty FROM crm.customers) c USING (qty)
