-- +goose Up

-- What is known of architectures that trials train. They belong to no study.
CREATE TABLE architecture (
    key      TEXT NOT NULL PRIMARY KEY,
    seen     TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;

CREATE INDEX architecture_by_time ON architecture (seen, key);
