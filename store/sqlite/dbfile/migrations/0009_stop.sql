-- +goose Up

-- The limits of a study that was extended, as the JSON document of its stop section;
-- empty where those of its definition hold, which never changes.
ALTER TABLE study ADD COLUMN stop TEXT NOT NULL DEFAULT '';

-- They belong into their rows' checksums. A row that is not what was written keeps
-- one that does not fit, so that it is still found.
UPDATE study SET checksum = row_checksum('study', id, fixed_checksum, status, reason, elapsed, since, finished, annotation, stop)
    WHERE checksum = row_checksum('study', id, fixed_checksum, status, reason, elapsed, since, finished, annotation);

-- The schema is another one now: its checksum is made again behind the migration.
UPDATE server SET schema_checksum = 0;
