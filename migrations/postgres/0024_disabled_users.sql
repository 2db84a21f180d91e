-- When an operator disabled the account; NULL while its person may sign in.
-- Microseconds since 1970.

ALTER TABLE users ADD COLUMN disabled_at bigint;
