-- expect: view-cycle
SELECT id FROM itself