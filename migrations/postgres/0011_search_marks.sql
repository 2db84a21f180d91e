-- To pg_trgm, punctuation parts words, and of `@1.2.3` it saw three words of a
-- digit each, which is to say nothing. Marks that names and versions have count
-- as letters now: capitals, which no folded text has. Where the extension came
-- later, the index is made with the first searched field.
DROP INDEX IF EXISTS search_texts_trigrams;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm') THEN
        CREATE INDEX search_texts_trigrams ON search_texts
            USING gin (translate(folded, '._@/-:+~', 'JVXZQWKY') gin_trgm_ops)
            WITH (gin_pending_list_limit = 512);
    END IF;
END
$$;
