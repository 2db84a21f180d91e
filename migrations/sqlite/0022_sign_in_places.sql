-- Devices and networks that an account has signed in from: failures elsewhere
-- do not keep it from signing in there. The account is a keyed hash of its
-- e-mail address, a device the hash of its cookie. Times are microseconds
-- since 1970.

CREATE TABLE sign_in_places (
    account TEXT NOT NULL,
    place   TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (account, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_places_age ON sign_in_places (seen_at);
