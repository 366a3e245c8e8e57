-- +goose Up

-- Documents are JSON as text, not jsonb: they come back to the letter, and no
-- NaN or infinity ever meets a number of the database's. What is searched by
-- stands in a column beside its document. Times are text in UTC of a fixed
-- width, to the nanosecond. Text sorts by its bytes, as everywhere in Tandem.
-- The position is the order of insertion.

-- Who writes. The holder is the process that has the term; each of its
-- transactions that writes checks the term and counts itself in written. The
-- secret lets servers tell each other's requests from those of others.
CREATE TABLE owner (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    term    bigint NOT NULL,
    holder  text NOT NULL,
    address text NOT NULL,
    secret  text NOT NULL,
    written bigint NOT NULL
);

INSERT INTO owner (term, holder, address, secret, written) VALUES (0, '', '', '', 0);

-- When the owner was last alive, by this database's clock. It is a row of its
-- own, so that no sign of life waits for a transaction that writes.
CREATE TABLE pulse (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at  timestamptz NOT NULL
);

INSERT INTO pulse (at) VALUES ('-infinity');

CREATE TABLE study (
    position   bigint GENERATED ALWAYS AS IDENTITY,
    id         text COLLATE "C" PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    definition text NOT NULL,
    status     text NOT NULL,
    reason     text NOT NULL,
    created    text COLLATE "C" NOT NULL,
    elapsed    bigint NOT NULL, -- nanoseconds
    since      text,
    finished   text
);

CREATE TABLE trial (
    id          text COLLATE "C" PRIMARY KEY,
    study       text COLLATE "C" NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    number      bigint NOT NULL,
    state       text NOT NULL,
    lease_epoch bigint NOT NULL,
    document    text NOT NULL,
    UNIQUE (study, number)
);

CREATE TABLE report (
    position bigint GENERATED ALWAYS AS IDENTITY,
    trial    text COLLATE "C" NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    rung     bigint NOT NULL,
    epoch    bigint NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (trial, rung, epoch)
);

CREATE TABLE event (
    study    text COLLATE "C" NOT NULL REFERENCES study (id) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    at       text NOT NULL,
    kind     text NOT NULL,
    trial    text COLLATE "C" NOT NULL, -- empty for an event of the study
    state    text NOT NULL,
    worker   text NOT NULL,
    reason   text NOT NULL,
    data     text NOT NULL, -- empty for none
    PRIMARY KEY (study, sequence)
);

CREATE INDEX event_of_trial ON event (trial, sequence) WHERE trial <> '';

CREATE TABLE snapshot (
    study    text COLLATE "C" PRIMARY KEY REFERENCES study (id) ON DELETE CASCADE,
    sequence bigint NOT NULL,
    state    text NOT NULL
);

CREATE TABLE receipt (
    key     text COLLATE "C" PRIMARY KEY,
    request text NOT NULL,
    answer  text NOT NULL, -- empty for none
    at      text COLLATE "C" NOT NULL
);

CREATE INDEX receipt_by_time ON receipt (at);

CREATE TABLE log (
    trial  text COLLATE "C" PRIMARY KEY REFERENCES trial (id) ON DELETE CASCADE,
    bytes  bigint NOT NULL,
    "full" boolean NOT NULL -- once text was dropped
);

-- start and stop count the bytes of the lease's log as its worker wrote it.
CREATE TABLE log_chunk (
    trial       text COLLATE "C" NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    lease_epoch bigint NOT NULL,
    start       bigint NOT NULL,
    stop        bigint NOT NULL,
    text        text NOT NULL,
    PRIMARY KEY (trial, lease_epoch, start)
);

CREATE TABLE token (
    position bigint GENERATED ALWAYS AS IDENTITY,
    id       text COLLATE "C" PRIMARY KEY,
    name     text NOT NULL,
    scope    text NOT NULL,
    hash     bytea NOT NULL,
    created  text COLLATE "C" NOT NULL,
    expires  text
);

-- What runs taught about their workloads, for each type of machine. It belongs
-- to no study and holds nothing of one.
CREATE TABLE ground_truth (
    id       text COLLATE "C" PRIMARY KEY,
    machine  text COLLATE "C" NOT NULL,
    updated  text COLLATE "C" NOT NULL,
    document text NOT NULL
);

-- With the id, so that the oldest are found without a look at the table.
CREATE INDEX ground_truth_by_time ON ground_truth (machine, updated, id);

-- What is known of architectures that trials train. They belong to no study.
CREATE TABLE architecture (
    key      text COLLATE "C" PRIMARY KEY,
    seen     text COLLATE "C" NOT NULL,
    document text NOT NULL
);

CREATE INDEX architecture_by_time ON architecture (seen, key);

-- Bytes that are being received or were: an upload is published by the row of
-- an artifact that names it.
CREATE TABLE upload (
    id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    term bigint NOT NULL
);

CREATE TABLE upload_chunk (
    upload bigint NOT NULL REFERENCES upload (id) ON DELETE CASCADE,
    number bigint NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (upload, number)
);

-- Trained parameters do not get smaller by compressing them.
ALTER TABLE upload_chunk ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE artifact (
    sha256 text COLLATE "C" PRIMARY KEY,
    bytes  bigint NOT NULL,
    put    timestamptz NOT NULL,
    upload bigint NOT NULL UNIQUE REFERENCES upload (id)
);
