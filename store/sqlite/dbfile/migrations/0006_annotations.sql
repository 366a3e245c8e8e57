-- +goose Up

-- What people wrote about a study, its tags and its note, as a JSON document;
-- empty for nothing. That about a trial is in the trial's document.
ALTER TABLE study ADD COLUMN annotation TEXT NOT NULL DEFAULT '';

-- The study that a token of the scope link opens; empty for other tokens.
ALTER TABLE token ADD COLUMN study TEXT NOT NULL DEFAULT '';

-- Both belong into their rows' checksums. A row that is not what was written
-- keeps one that does not fit, so that it is still found.
UPDATE study SET checksum = row_checksum('study', id, fixed_checksum, status, reason, elapsed, since, finished, annotation)
    WHERE checksum = row_checksum('study', id, fixed_checksum, status, reason, elapsed, since, finished);
UPDATE token SET checksum = row_checksum('token', position, id, name, scope, worker, hash, created, expires, used, study)
    WHERE checksum = row_checksum('token', position, id, name, scope, worker, hash, created, expires, used);

-- The schema is another one now: its checksum is made again behind the migration.
UPDATE server SET schema_checksum = 0;
