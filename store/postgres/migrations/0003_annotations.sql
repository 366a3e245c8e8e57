-- +goose Up

-- What people wrote about a study, its tags and its note, as a JSON document;
-- empty for nothing. That about a trial is in the trial's document.
ALTER TABLE study ADD COLUMN annotation text NOT NULL DEFAULT '';

-- The study that a token of the scope link opens; empty for other tokens.
ALTER TABLE token ADD COLUMN study text NOT NULL DEFAULT '';
