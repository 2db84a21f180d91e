-- Each collection has a table of its own, named like it (`support.cases`), with
-- the columns of `documents` except `collection`. The tables are created with
-- the indexes that the area declares. `Store::open` moves the documents of an
-- older database into them and then drops `documents`.

CREATE TABLE collections (
    name TEXT NOT NULL PRIMARY KEY -- area.name
) STRICT, WITHOUT ROWID;
