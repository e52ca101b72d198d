-- +goose Up

-- Of what the row says; NULL in rows of before.
ALTER TABLE grants ADD COLUMN sum BLOB;
ALTER TABLE skill_version ADD COLUMN sum BLOB;
