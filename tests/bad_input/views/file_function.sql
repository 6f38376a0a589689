-- expect: unsupported-table-function
SELECT * FROM read_csv('/etc/passwd')