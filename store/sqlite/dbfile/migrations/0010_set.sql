-- +goose Up

-- The column stop of a study may hold a priority and a bound of trials at once, with or
-- without limits. A program from before would read that as limits of 0, which are none:
-- the version is raised so that it refuses the database.
UPDATE server SET schema_checksum = 0;
