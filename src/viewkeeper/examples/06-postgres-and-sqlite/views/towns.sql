-- consistency: complete
SELECT t.town, count(*) AS accounts, sum(a.balance) AS balance
FROM branch.tills t
JOIN bank.accounts a ON a.till_id = t.till_id
GROUP BY t.town
