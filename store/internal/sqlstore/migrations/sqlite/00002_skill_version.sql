-- +goose Up

-- The skills that were imported for tenants, with their history. No row changes.
CREATE TABLE skill_version (
	n           INTEGER PRIMARY KEY, -- the order of their coming: the greatest of a skill is the newest
	tenant      TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	skill       TEXT    NOT NULL,
	digest      BLOB REFERENCES content (digest), -- NULL exactly for a deletion
	stored      INTEGER NOT NULL CHECK (stored IN (0, 1)),
	source      TEXT    NOT NULL,
	reason      TEXT    NOT NULL,
	imported_by TEXT    NOT NULL,
	imported    INTEGER NOT NULL, -- microseconds since 1970
	deleted     INTEGER NOT NULL CHECK (deleted = (digest IS NULL)),
	UNIQUE (tenant, id)
) STRICT;

CREATE INDEX skill_version_by_skill ON skill_version (tenant, skill, n);
CREATE INDEX skill_version_by_digest ON skill_version (digest, tenant);
