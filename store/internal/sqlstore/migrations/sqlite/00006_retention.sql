-- +goose Up

-- When the files of a content were erased, in microseconds since 1970; NULL for
-- one that is there.
ALTER TABLE content ADD COLUMN erased INTEGER;

-- A file is erased with the last content that has it.
CREATE INDEX content_file_by_blob ON content_file (blob);
