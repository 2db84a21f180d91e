-- Each collection has a table of its own: a partition of `documents`, named like
-- the collection (`support.cases`). An insert then costs the same whatever number
-- of other collections exists, and each collection has its own statistics.
-- The partitions are created with the indexes that the area declares.
--
-- An empty `documents` is replaced here. One with documents stays in use, also by
-- nodes of older releases, while a node copies them into
-- `documents_by_collection`: a trigger writes each change to both, and the last
-- step replaces the table (`store::documents_move`).

CREATE TABLE collections (
    name text COLLATE "C" PRIMARY KEY -- area.name
);

CREATE TABLE documents_by_collection (
    workspace_id uuid NOT NULL,
    collection text COLLATE "C" NOT NULL, -- area.name
    id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    body jsonb NOT NULL, -- an object
    PRIMARY KEY (workspace_id, collection, id)
) PARTITION BY LIST (collection);

-- Creates the partition of a collection. An attached table locks the parent less
-- than a table that is created as a partition: reads and writes go on.
CREATE FUNCTION create_collection(collection text, partition text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    parent text := CASE WHEN to_regclass('documents_by_collection') IS NULL
                        THEN 'documents' ELSE 'documents_by_collection' END;
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) WITH '
                   '(autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)',
                   partition, parent);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%L)',
                   parent, partition, collection);
    INSERT INTO collections VALUES (collection);
END
$$;

-- Names the table of a collection. The name of its primary key, 5 bytes longer,
-- must fit into PostgreSQL's 63 bytes.
CREATE FUNCTION collection_table(collection text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN length(collection) <= 57 THEN collection
           ELSE left(collection, 44) || '~' || left(encode(sha256(collection::bytea), 'hex'), 12)
           END
$$;

-- Copies a change to the table that replaces `documents`.
CREATE FUNCTION mirror_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM documents_by_collection AS d WHERE d.workspace_id = OLD.workspace_id
            AND d.collection = OLD.collection AND d.id = OLD.id;
    ELSE
        INSERT INTO documents_by_collection VALUES (NEW.*)
            ON CONFLICT (workspace_id, collection, id) DO UPDATE SET
            version = excluded.version, created_at = excluded.created_at,
            updated_at = excluded.updated_at, body = excluded.body;
    END IF;
    RETURN NULL;
END
$$;

-- One row while documents are moved: the last one that was copied, in the order
-- of the primary key, and the number of documents copied so far.
CREATE TABLE documents_moved (
    workspace_id uuid NOT NULL,
    collection text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    copied bigint NOT NULL
);

-- Replaces `documents` by the partitioned table.
CREATE FUNCTION replace_documents() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE documents, documents_by_collection IN ACCESS EXCLUSIVE MODE;
    IF (SELECT count(*) FROM documents) <> (SELECT count(*) FROM documents_by_collection) THEN
        RAISE EXCEPTION 'the copies in documents_by_collection are not complete';
    END IF;
    DROP TABLE documents;
    DELETE FROM documents_moved;
    DROP FUNCTION mirror_document(), replace_documents();
    ALTER TABLE documents_by_collection RENAME TO documents;
    ALTER INDEX documents_by_collection_pkey RENAME TO documents_pkey;
END
$$;

LOCK TABLE documents IN ACCESS EXCLUSIVE MODE;

SELECT create_collection(collection, collection_table(collection))
FROM (SELECT DISTINCT collection FROM documents) AS stored;

CREATE TRIGGER mirror_document AFTER INSERT OR UPDATE OR DELETE ON documents
FOR EACH ROW EXECUTE FUNCTION mirror_document();

INSERT INTO documents_moved VALUES ('00000000-0000-0000-0000-000000000000', '', '', 0);

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM documents) THEN
        PERFORM replace_documents();
    END IF;
END
$$;
