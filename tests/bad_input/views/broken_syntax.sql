-- expect: syntax-error
SELECT FROM WHERE