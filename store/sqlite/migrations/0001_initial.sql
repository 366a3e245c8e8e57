-- +goose Up
-- Times are nanoseconds since 1970 in UTC. Measured values live only inside
-- JSON documents, where NaN and the infinities are tagged strings: a REAL
-- column would store NaN as NULL without a word.

CREATE TABLE study (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL,
    status     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    created    INTEGER NOT NULL,
    elapsed    INTEGER NOT NULL,
    since      INTEGER,
    finished   INTEGER
) STRICT;

CREATE TABLE trial (
    id          TEXT PRIMARY KEY,
    study_id    TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    lease_epoch INTEGER NOT NULL,
    document    TEXT NOT NULL,
    UNIQUE (study_id, number)
) STRICT;

CREATE TABLE report (
    id       INTEGER PRIMARY KEY,
    trial_id TEXT NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    rung     INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (trial_id, rung, epoch)
) STRICT;

CREATE TABLE event (
    study_id TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    trial_id TEXT NOT NULL,
    state    TEXT NOT NULL,
    worker   TEXT NOT NULL,
    reason   TEXT NOT NULL,
    data     TEXT NOT NULL,
    PRIMARY KEY (study_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE INDEX event_of_trial ON event (study_id, trial_id, sequence) WHERE trial_id <> '';

CREATE TABLE snapshot (
    study_id TEXT PRIMARY KEY REFERENCES study (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    state    TEXT NOT NULL
) STRICT;

CREATE TABLE receipt (
    key     TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    answer  TEXT NOT NULL,
    at      INTEGER NOT NULL
) STRICT;

CREATE INDEX receipt_by_age ON receipt (at);

CREATE TABLE log_chunk (
    trial_id    TEXT NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    lease_epoch INTEGER NOT NULL,
    start       INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    text        TEXT NOT NULL,
    PRIMARY KEY (trial_id, lease_epoch, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    scope   TEXT NOT NULL,
    hash    BLOB NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER
) STRICT;
