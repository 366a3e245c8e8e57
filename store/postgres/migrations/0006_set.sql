-- +goose Up

-- A program from before would read a priority alone as limits of 0, which are none: the
-- version is raised so that it refuses the database.
COMMENT ON COLUMN study.stop IS 'what was changed since the study was created, as a JSON document; empty: nothing';
