-- +goose Up

-- Documents are JSON text, so that no NaN or infinity ever meets a REAL column
-- (SQLite would store NaN as NULL). What is searched by stands in a column
-- beside its document. Times are text in UTC of a fixed width, which sorts.
-- The position is the order of insertion; a VACUUM keeps it.

-- "TNDM": says whose file this is.
PRAGMA application_id = 1414415437;

-- How many servers have opened this file: each write checks that its server is
-- still the newest.
CREATE TABLE server (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL
) STRICT;

INSERT INTO server (one, epoch) VALUES (1, 0);

CREATE TABLE study (
    position   INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL,
    status     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    created    TEXT NOT NULL,
    elapsed    INTEGER NOT NULL, -- nanoseconds
    since      TEXT,
    finished   TEXT
) STRICT;

CREATE TABLE trial (
    id          TEXT NOT NULL PRIMARY KEY,
    study       TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    lease_epoch INTEGER NOT NULL,
    document    TEXT NOT NULL,
    UNIQUE (study, number)
) STRICT;

CREATE TABLE report (
    position INTEGER PRIMARY KEY,
    trial    TEXT NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    rung     INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (trial, rung, epoch)
) STRICT;

CREATE TABLE event (
    position INTEGER PRIMARY KEY,
    study    TEXT NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    at       TEXT NOT NULL,
    kind     TEXT NOT NULL,
    trial    TEXT NOT NULL, -- empty for an event of the study
    state    TEXT NOT NULL,
    worker   TEXT NOT NULL,
    reason   TEXT NOT NULL,
    data     TEXT NOT NULL, -- empty for none
    UNIQUE (study, sequence)
) STRICT;

CREATE INDEX event_of_trial ON event (trial, sequence) WHERE trial <> '';

CREATE TABLE snapshot (
    study    TEXT NOT NULL PRIMARY KEY REFERENCES study (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    state    TEXT NOT NULL
) STRICT;

CREATE TABLE receipt (
    key     TEXT NOT NULL PRIMARY KEY,
    request TEXT NOT NULL,
    answer  TEXT NOT NULL, -- empty for none
    at      TEXT NOT NULL
) STRICT;

CREATE INDEX receipt_by_time ON receipt (at);

CREATE TABLE log (
    trial TEXT NOT NULL PRIMARY KEY REFERENCES trial (id) ON DELETE CASCADE,
    bytes INTEGER NOT NULL,
    "full" INTEGER NOT NULL -- 1 once text was dropped
) STRICT;

-- start and stop count the bytes of the lease's log as its worker wrote it.
CREATE TABLE log_chunk (
    trial       TEXT NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    lease_epoch INTEGER NOT NULL,
    start       INTEGER NOT NULL,
    stop        INTEGER NOT NULL,
    text        TEXT NOT NULL,
    PRIMARY KEY (trial, lease_epoch, start)
) STRICT;

CREATE TABLE token (
    position INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    name     TEXT NOT NULL,
    scope    TEXT NOT NULL,
    hash     BLOB NOT NULL,
    created  TEXT NOT NULL,
    expires  TEXT
) STRICT;
