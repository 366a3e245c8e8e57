-- +goose Up

-- An event may name a trial of another study, and stays with its own study when
-- that trial goes. So the list of the events that name a trial ends with its
-- last event, and no more with the trial.
DROP TRIGGER trial_deleted;
-- +goose StatementBegin
CREATE TRIGGER trial_deleted AFTER DELETE ON trial BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.study AND kind = 'trial';
    DELETE FROM tally WHERE owner = old.id AND kind IN ('report', 'log_chunk');
END;
-- +goose StatementEnd
DROP TRIGGER event_deleted;
-- +goose StatementBegin
CREATE TRIGGER event_deleted AFTER DELETE ON event BEGIN
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.study AND kind = 'event';
    UPDATE tally SET entries = entries - 1, total = total - old.checksum WHERE owner = old.trial AND kind = 'told';
    DELETE FROM tally WHERE owner = old.trial AND kind = 'told' AND entries = 0;
END;
-- +goose StatementEnd

-- The schema is another one now: its checksum is made again behind the migration.
UPDATE server SET schema_checksum = 0;
