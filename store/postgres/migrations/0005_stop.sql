-- +goose Up

-- The limits of a study that was extended, as the JSON document of its stop section;
-- empty where those of its definition hold, which never changes.
ALTER TABLE study ADD COLUMN stop text NOT NULL DEFAULT '';
