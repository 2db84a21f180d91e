-- A sample of the pairs, with its own index of trigrams, tells how frequent a
-- part of a text is before all that have it are found. Where the extension came
-- later, the index is made with the first searched field.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm') THEN
        CREATE INDEX search_texts_sample ON search_texts
            USING gin (folded gin_trgm_ops)
            WITH (gin_pending_list_limit = 64)
            WHERE md5(key || folded) < '04';
    END IF;
END
$$;
