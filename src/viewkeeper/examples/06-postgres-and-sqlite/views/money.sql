-- All the money there is, wherever it lies: a transfer must never change the sum.
-- consistency: complete
SELECT 'till' AS place, t.till_id AS id, t.cash AS amount FROM branch.tills t
UNION ALL
SELECT 'account' AS place, a.account_id AS id, a.balance AS amount FROM bank.accounts a
