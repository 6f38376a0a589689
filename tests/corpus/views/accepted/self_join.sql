SELECT c.name, b.name AS boss FROM crm.customers c JOIN crm.customers b ON c.boss_id = b.cust_id
