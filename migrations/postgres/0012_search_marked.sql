-- Texts are kept as the index of trigrams has them: of each that it finds,
-- PostgreSQL looks at the text again, and translating it then took longer than
-- all else.
DROP INDEX IF EXISTS search_texts_trigrams;

UPDATE search_texts SET folded = translate(folded, '._@/-:+~', 'JVXZQWKY')
    WHERE folded <> translate(folded, '._@/-:+~', 'JVXZQWKY');

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm') THEN
        CREATE INDEX search_texts_trigrams ON search_texts
            USING gin (folded gin_trgm_ops)
            WITH (gin_pending_list_limit = 512);
    END IF;
END
$$;
