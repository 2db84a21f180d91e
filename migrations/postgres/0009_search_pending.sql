-- Trigrams of new texts wait in a list until there are many to be indexed
-- together: one text at a time, they took longer than all else of an import.
-- Every search reads that list, so it is kept short (in kB).
ALTER INDEX IF EXISTS search_texts_trigrams
    SET (fastupdate = on, gin_pending_list_limit = 512);
