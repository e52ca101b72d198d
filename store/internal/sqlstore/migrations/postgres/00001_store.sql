-- +goose Up

-- Texts are compared and ordered by their bytes, whatever the database's collation.

-- The log. The bytes are the record; the columns beside them are an index.
CREATE TABLE leaf (
	idx    BIGINT PRIMARY KEY, -- from 0
	tenant TEXT COLLATE "C" NOT NULL,
	seq    BIGINT NOT NULL,    -- from 1 in each tenant
	hash   BYTEA NOT NULL,
	bytes  BYTEA NOT NULL,
	UNIQUE (tenant, seq)
);

CREATE TABLE log_head (
	one  BIGINT PRIMARY KEY CHECK (one = 1),
	size BIGINT NOT NULL,
	edge BYTEA NOT NULL -- of the tree: 32 bytes for each complete subtree, the largest first
);

INSERT INTO log_head (one, size, edge) VALUES (1, 0, '');

CREATE TABLE tenant_head (
	tenant TEXT COLLATE "C" PRIMARY KEY,
	seq    BIGINT NOT NULL,
	hash   BYTEA NOT NULL
);

-- Contents by digest. Equal files are kept once.
CREATE TABLE content (
	digest      BYTEA PRIMARY KEY,
	declaration BYTEA NOT NULL
);

CREATE TABLE blob (
	digest BYTEA PRIMARY KEY,
	data   BYTEA NOT NULL
);

CREATE TABLE content_file (
	content BYTEA NOT NULL REFERENCES content (digest),
	path    TEXT COLLATE "C" NOT NULL,
	blob    BYTEA NOT NULL REFERENCES blob (digest),
	size    BIGINT NOT NULL,
	PRIMARY KEY (content, path)
);

-- Times are microseconds since 1970; NULL where there is none.
CREATE TABLE grants (
	n           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of their coming: the greatest of a reference is the newest
	tenant      TEXT COLLATE "C" NOT NULL,
	id          TEXT COLLATE "C" NOT NULL,
	skill       TEXT COLLATE "C" NOT NULL,
	script      TEXT COLLATE "C" NOT NULL,    -- empty exactly when all_scripts is 1
	all_scripts BIGINT NOT NULL CHECK (all_scripts = CAST(script = '' AS INTEGER)),
	pin         BYTEA NOT NULL REFERENCES content (digest),
	reason      TEXT COLLATE "C" NOT NULL,
	source      TEXT COLLATE "C" NOT NULL,
	granted_by  TEXT COLLATE "C" NOT NULL,
	granted     BIGINT NOT NULL,
	expires     BIGINT,
	revoked     BIGINT,
	revoked_by  TEXT COLLATE "C" NOT NULL,
	min_tier    TEXT COLLATE "C" NOT NULL,
	UNIQUE (tenant, id)
);

CREATE INDEX grants_by_reference ON grants (tenant, skill, script, n);
CREATE INDEX grants_by_coming ON grants (tenant, n);
CREATE INDEX grants_by_pin ON grants (pin, tenant);

CREATE TABLE host_setting (
	one      BIGINT PRIMARY KEY CHECK (one = 1),
	revision BIGINT NOT NULL,
	setting  TEXT COLLATE "C" NOT NULL -- JSON
);

CREATE TABLE policy (
	tenant   TEXT COLLATE "C" PRIMARY KEY,
	revision BIGINT NOT NULL,
	setting  TEXT COLLATE "C" NOT NULL -- JSON
);

CREATE TABLE call_record (
	tenant TEXT COLLATE "C" NOT NULL,
	id     TEXT COLLATE "C" NOT NULL,
	skill  TEXT COLLATE "C" NOT NULL,
	digest BYTEA NOT NULL, -- of the closure: a content that a run names is kept
	rest   TEXT COLLATE "C" NOT NULL, -- JSON
	PRIMARY KEY (tenant, id)
);

CREATE INDEX call_record_by_skill ON call_record (tenant, skill, id);
