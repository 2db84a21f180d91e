-- Mails of a day to one address (a keyed hash of it) and from one workspace.
-- Times are microseconds since 1970.

CREATE TABLE mail_counts (
    subject TEXT PRIMARY KEY,
    mails   INTEGER NOT NULL,
    since   INTEGER NOT NULL, -- when the first of the day was sent
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX mail_counts_age ON mail_counts (since);
