-- Mails of a day to one address (a keyed hash of it) and from one workspace.
-- Times are microseconds since 1970.

CREATE TABLE mail_counts (
    subject TEXT PRIMARY KEY,
    mails   BIGINT NOT NULL,
    since   BIGINT NOT NULL, -- when the first of the day was sent
    last_at BIGINT NOT NULL
);

CREATE INDEX mail_counts_age ON mail_counts (since);
