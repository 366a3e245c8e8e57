-- +goose Up

-- Each row has a checksum of all it says (see checksum.go, which also gives
-- connections the function row_checksum), and each list of rows has a tally:
-- how many there are, and the sum of their checksums. So a row that was changed,
-- lost or is an older version of itself is noticed when it is read.

CREATE TABLE tally (
    owner   TEXT NOT NULL, -- the study, trial or type of machine; empty for a list of all
    kind    TEXT NOT NULL, -- the table, or 'told' for the events of a trial
    entries INTEGER NOT NULL,
    total   INTEGER NOT NULL, -- of the checksums
    newest  INTEGER NOT NULL, -- the highest sequence of events, else 0
    PRIMARY KEY (owner, kind)
) STRICT, WITHOUT ROWID;

-- How many transactions were committed: a file beside the database has the last
-- one that was acknowledged.
ALTER TABLE server ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
-- Of the schema itself, once it is complete.
ALTER TABLE server ADD COLUMN schema_checksum INTEGER NOT NULL DEFAULT 0;

-- What of a study never changes has a checksum of its own.
ALTER TABLE study ADD COLUMN fixed_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE study ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trial ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE report ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE event ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshot ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE receipt ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log_chunk ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE token ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ground_truth ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE architecture ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

UPDATE study SET fixed_checksum = row_checksum('study', position, id, name, definition, created);
UPDATE study SET checksum = row_checksum('study', id, fixed_checksum, status, reason, elapsed, since, finished);
UPDATE trial SET checksum = row_checksum('trial', id, study, number, state, lease_epoch, document);
UPDATE report SET checksum = row_checksum('report', trial, rung, epoch, document);
UPDATE event SET checksum = row_checksum('event', study, sequence, at, kind, trial, state, worker, reason, data);
UPDATE snapshot SET checksum = row_checksum('snapshot', study, sequence, state);
UPDATE receipt SET checksum = row_checksum('receipt', key, request, answer, at);
UPDATE log SET checksum = row_checksum('log', trial, bytes, "full");
UPDATE log_chunk SET checksum = row_checksum('log_chunk', trial, lease_epoch, start, stop, text);
UPDATE token SET checksum = row_checksum('token', position, id, name, scope, worker, hash, created, expires, used);
UPDATE ground_truth SET checksum = row_checksum('ground_truth', id, machine, updated, document);
UPDATE architecture SET checksum = row_checksum('architecture', key, seen, document);

INSERT INTO tally SELECT '', 'study', count(*), sum(checksum), 0 FROM study HAVING count(*) > 0;
INSERT INTO tally SELECT study, 'trial', count(*), sum(checksum), 0 FROM trial GROUP BY study;
INSERT INTO tally SELECT trial, 'report', count(*), sum(checksum), 0 FROM report GROUP BY trial;
INSERT INTO tally SELECT study, 'event', count(*), sum(checksum), max(sequence) FROM event GROUP BY study;
INSERT INTO tally SELECT trial, 'told', count(*), sum(checksum), max(sequence) FROM event WHERE trial <> '' GROUP BY trial;
INSERT INTO tally SELECT study, 'snapshot', count(*), sum(checksum), 0 FROM snapshot GROUP BY study;
INSERT INTO tally SELECT '', 'receipt', count(*), sum(checksum), 0 FROM receipt HAVING count(*) > 0;
INSERT INTO tally SELECT trial, 'log_chunk', count(*), sum(checksum), 0 FROM log_chunk GROUP BY trial;
INSERT INTO tally SELECT '', 'token', count(*), sum(checksum), 0 FROM token HAVING count(*) > 0;
INSERT INTO tally SELECT machine, 'ground_truth', count(*), sum(checksum), 0 FROM ground_truth GROUP BY machine;
INSERT INTO tally SELECT '', 'architecture', count(*), sum(checksum), 0 FROM architecture HAVING count(*) > 0;

-- Triggers keep the tallies, so that no statement can forget to. Nothing here
-- may be written with OR REPLACE, whose deletions start no trigger.

-- +goose StatementBegin
CREATE TRIGGER study_inserted AFTER INSERT ON study BEGIN
    INSERT INTO tally VALUES ('', 'study', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER study_updated AFTER UPDATE ON study BEGIN
    UPDATE tally SET total = total - old.checksum + new.checksum WHERE owner = '' AND kind = 'study';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER study_deleted AFTER DELETE ON study BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = '' AND kind = 'study';
    DELETE FROM tally WHERE owner = old.id AND kind IN ('trial', 'event', 'snapshot');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER trial_inserted AFTER INSERT ON trial BEGIN
    INSERT INTO tally VALUES (new.study, 'trial', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER trial_updated AFTER UPDATE ON trial BEGIN
    UPDATE tally SET total = total - old.checksum + new.checksum WHERE owner = new.study AND kind = 'trial';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER trial_deleted AFTER DELETE ON trial BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.study AND kind = 'trial';
    DELETE FROM tally WHERE owner = old.id AND kind IN ('report', 'told', 'log_chunk');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER report_inserted AFTER INSERT ON report BEGIN
    INSERT INTO tally VALUES (new.trial, 'report', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER report_deleted AFTER DELETE ON report BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.trial AND kind = 'report';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER event_inserted AFTER INSERT ON event BEGIN
    INSERT INTO tally VALUES (new.study, 'event', 1, new.checksum, new.sequence)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total, newest = max(newest, excluded.newest);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER event_told AFTER INSERT ON event WHEN new.trial <> '' BEGIN
    INSERT INTO tally VALUES (new.trial, 'told', 1, new.checksum, new.sequence)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total, newest = max(newest, excluded.newest);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER event_deleted AFTER DELETE ON event BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.study AND kind = 'event';
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.trial AND kind = 'told';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER snapshot_inserted AFTER INSERT ON snapshot BEGIN
    INSERT INTO tally VALUES (new.study, 'snapshot', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER snapshot_updated AFTER UPDATE ON snapshot BEGIN
    UPDATE tally SET total = total - old.checksum + new.checksum WHERE owner = new.study AND kind = 'snapshot';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER snapshot_deleted AFTER DELETE ON snapshot BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.study AND kind = 'snapshot';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER receipt_inserted AFTER INSERT ON receipt BEGIN
    INSERT INTO tally VALUES ('', 'receipt', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER receipt_deleted AFTER DELETE ON receipt BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = '' AND kind = 'receipt';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER log_chunk_inserted AFTER INSERT ON log_chunk BEGIN
    INSERT INTO tally VALUES (new.trial, 'log_chunk', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER log_chunk_deleted AFTER DELETE ON log_chunk BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.trial AND kind = 'log_chunk';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER token_inserted AFTER INSERT ON token BEGIN
    INSERT INTO tally VALUES ('', 'token', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER token_updated AFTER UPDATE ON token BEGIN
    UPDATE tally SET total = total - old.checksum + new.checksum WHERE owner = '' AND kind = 'token';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER token_deleted AFTER DELETE ON token BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = '' AND kind = 'token';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER ground_truth_inserted AFTER INSERT ON ground_truth BEGIN
    INSERT INTO tally VALUES (new.machine, 'ground_truth', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ground_truth_updated AFTER UPDATE ON ground_truth BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.machine AND kind = 'ground_truth';
    INSERT INTO tally VALUES (new.machine, 'ground_truth', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ground_truth_deleted AFTER DELETE ON ground_truth BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.machine AND kind = 'ground_truth';
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER architecture_inserted AFTER INSERT ON architecture BEGIN
    INSERT INTO tally VALUES ('', 'architecture', 1, new.checksum, 0)
        ON CONFLICT (owner, kind) DO UPDATE SET entries = entries + 1, total = total + excluded.total;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER architecture_updated AFTER UPDATE ON architecture BEGIN
    UPDATE tally SET total = total - old.checksum + new.checksum WHERE owner = '' AND kind = 'architecture';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER architecture_deleted AFTER DELETE ON architecture BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = '' AND kind = 'architecture';
END;
-- +goose StatementEnd
