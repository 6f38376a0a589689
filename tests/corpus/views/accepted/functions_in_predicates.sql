SELECT cust_id FROM crm.customers WHERE length(trim(name)) >= 1 AND substring(name FROM 1 FOR 1) <> 'z' AND substring(name, region_id) <> 'q'
