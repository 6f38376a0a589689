SELECT cust_id FROM crm.customers WHERE name LIKE 'a\%b' OR name LIKE '%\\\\' OR name LIKE r'a\_b' OR name LIKE '%''%'
