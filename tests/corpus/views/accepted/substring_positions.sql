SELECT cust_id, substring(name, -1) AS last, substring(name, 0, 2) AS zero, substring(name, 2, 9) AS rest, substring(name, -5, 4) AS before, substring(name, 1, -1) AS none FROM crm.customers
