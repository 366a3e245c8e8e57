-- +goose Up

-- What is kept of the pool of workers beside their studies, such as quotas and
-- reservations: each a JSON document by its kind and name.
CREATE TABLE pool_entry (
    kind     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (kind, name)
);
