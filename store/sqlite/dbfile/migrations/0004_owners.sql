-- +goose Up

-- From here on a study's name is its reference: "owner:name" for a user's, so
-- that names are unique for each owner, and the name alone for one of the
-- administrators.

-- The machine that a worker's token belongs to, empty for none yet; and when the
-- token was last used.
ALTER TABLE token ADD COLUMN worker TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN used TEXT;

-- Tokens of workers were made for any number of machines so far.
UPDATE token SET worker = '*' WHERE scope = 'worker';
