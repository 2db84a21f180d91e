-- Pairs in the order of their keys, with their texts, so that looking at them
-- one by one reads this index and not the table, where they lie anywhere. A
-- text that is too long for an index's entry is found by an index of its own.
CREATE INDEX search_texts_walk
    ON search_texts (workspace_id, collection, field, key) INCLUDE (folded)
    WHERE octet_length(key) + octet_length(folded) <= 2000;
CREATE INDEX search_texts_long
    ON search_texts (workspace_id, collection, field, key)
    WHERE octet_length(key) + octet_length(folded) > 2000;

-- Only pages that were vacuumed are passed over. Pairs are never removed.
ALTER TABLE search_texts SET (
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_vacuum_insert_threshold = 1000
);
