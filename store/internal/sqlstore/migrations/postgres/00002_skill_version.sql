-- +goose Up

-- The skills that were imported for tenants, with their history. No row changes.
CREATE TABLE skill_version (
	n           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of their coming: the greatest of a skill is the newest
	tenant      TEXT COLLATE "C" NOT NULL,
	id          TEXT COLLATE "C" NOT NULL,
	skill       TEXT COLLATE "C" NOT NULL,
	digest      BYTEA REFERENCES content (digest), -- NULL exactly for a deletion
	stored      BIGINT NOT NULL CHECK (stored IN (0, 1)),
	source      TEXT COLLATE "C" NOT NULL,
	reason      TEXT COLLATE "C" NOT NULL,
	imported_by TEXT COLLATE "C" NOT NULL,
	imported    BIGINT NOT NULL, -- microseconds since 1970
	deleted     BIGINT NOT NULL CHECK (deleted = CAST(digest IS NULL AS INTEGER)),
	UNIQUE (tenant, id)
);

CREATE INDEX skill_version_by_skill ON skill_version (tenant, skill, n);
CREATE INDEX skill_version_by_digest ON skill_version (digest, tenant);
