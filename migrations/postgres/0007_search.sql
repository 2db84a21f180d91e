-- Texts that are searched for a part of them: each pair of a text and the key
-- that its documents are ordered by, once, whatever the number of documents.
-- Pairs are never removed; one without documents is passed over. An index of
-- trigrams joins them where the extension pg_trgm is to be had.

CREATE TABLE search_texts (
    workspace_id uuid NOT NULL,
    collection text COLLATE "C" NOT NULL, -- area.name
    field text COLLATE "C" NOT NULL, -- which text
    key text COLLATE "C" NOT NULL,
    folded text COLLATE "C" NOT NULL -- in lower case
);

-- A text may be longer than an index's entry.
CREATE UNIQUE INDEX search_texts_key
    ON search_texts (workspace_id, collection, field, key, md5(folded));

-- Fields whose pairs are complete.
CREATE TABLE searched_fields (
    collection text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL,
    key_field text COLLATE "C" NOT NULL,
    PRIMARY KEY (collection, field, key_field)
);
