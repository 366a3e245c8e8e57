-- +goose Up

-- What runs taught about their workloads, for each type of machine. It belongs
-- to no study and holds nothing of one.
CREATE TABLE ground_truth (
    id       TEXT NOT NULL PRIMARY KEY,
    machine  TEXT NOT NULL,
    updated  TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;

-- With the id, so that the oldest are found without a look at the table.
CREATE INDEX ground_truth_by_time ON ground_truth (machine, updated, id);
