-- +goose Up

-- What is kept of the pool of workers beside their studies, such as quotas and
-- reservations: each a JSON document by its kind and name.
CREATE TABLE pool_entry (
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    document TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER pool_entry_inserted AFTER INSERT ON pool_entry BEGIN
    INSERT INTO tally VALUES (new.kind, 'pool_entry', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pool_entry_updated AFTER UPDATE ON pool_entry BEGIN
    UPDATE tally SET total = total - old.checksum + new.checksum WHERE owner = new.kind AND kind = 'pool_entry';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pool_entry_deleted AFTER DELETE ON pool_entry BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.kind AND kind = 'pool_entry';
END;
-- +goose StatementEnd

-- The schema is another one now: its checksum is made again behind the migration.
UPDATE server SET schema_checksum = 0;
