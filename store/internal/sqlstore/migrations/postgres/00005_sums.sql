-- +goose Up

-- Of what the row says; NULL in rows of before.
ALTER TABLE grants ADD COLUMN sum BYTEA;
ALTER TABLE skill_version ADD COLUMN sum BYTEA;
