-- +goose Up

-- A survey reads the versions of a tenant in the order of their coming.
CREATE INDEX skill_version_by_coming ON skill_version (tenant, n);
