-- +goose Up

-- The log. The bytes are the record; the columns beside them are an index.
CREATE TABLE leaf (
	idx    INTEGER PRIMARY KEY, -- from 0
	tenant TEXT    NOT NULL,
	seq    INTEGER NOT NULL,    -- from 1 in each tenant
	hash   BLOB    NOT NULL,
	bytes  BLOB    NOT NULL,
	UNIQUE (tenant, seq)
) STRICT;

CREATE TABLE log_head (
	one  INTEGER PRIMARY KEY CHECK (one = 1),
	size INTEGER NOT NULL,
	edge BLOB    NOT NULL -- of the tree: 32 bytes for each complete subtree, the largest first
) STRICT;

INSERT INTO log_head (one, size, edge) VALUES (1, 0, x'');

CREATE TABLE tenant_head (
	tenant TEXT    PRIMARY KEY,
	seq    INTEGER NOT NULL,
	hash   BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- Contents by digest. Equal files are kept once.
CREATE TABLE content (
	digest      BLOB PRIMARY KEY,
	declaration BLOB NOT NULL
) STRICT;

CREATE TABLE blob (
	digest BLOB PRIMARY KEY,
	data   BLOB NOT NULL
) STRICT;

CREATE TABLE content_file (
	content BLOB    NOT NULL REFERENCES content (digest),
	path    TEXT    NOT NULL,
	blob    BLOB    NOT NULL REFERENCES blob (digest),
	size    INTEGER NOT NULL,
	PRIMARY KEY (content, path)
) STRICT, WITHOUT ROWID;

-- Times are microseconds since 1970; NULL where there is none.
CREATE TABLE grants (
	n           INTEGER PRIMARY KEY, -- the order of their coming: the greatest of a reference is the newest
	tenant      TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	skill       TEXT    NOT NULL,
	script      TEXT    NOT NULL,    -- empty exactly when all_scripts is 1
	all_scripts INTEGER NOT NULL CHECK (all_scripts = (script = '')),
	pin         BLOB    NOT NULL REFERENCES content (digest),
	reason      TEXT    NOT NULL,
	source      TEXT    NOT NULL,
	granted_by  TEXT    NOT NULL,
	granted     INTEGER NOT NULL,
	expires     INTEGER,
	revoked     INTEGER,
	revoked_by  TEXT    NOT NULL,
	min_tier    TEXT    NOT NULL,
	UNIQUE (tenant, id)
) STRICT;

CREATE INDEX grants_by_reference ON grants (tenant, skill, script, n);
CREATE INDEX grants_by_coming ON grants (tenant, n);
CREATE INDEX grants_by_pin ON grants (pin, tenant);

CREATE TABLE host_setting (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	revision INTEGER NOT NULL,
	setting  TEXT    NOT NULL -- JSON
) STRICT;

CREATE TABLE policy (
	tenant   TEXT    PRIMARY KEY,
	revision INTEGER NOT NULL,
	setting  TEXT    NOT NULL -- JSON
) STRICT;

CREATE TABLE call_record (
	tenant TEXT NOT NULL,
	id     TEXT NOT NULL,
	skill  TEXT NOT NULL,
	digest BLOB NOT NULL, -- of the closure: a content that a run names is kept
	rest   TEXT NOT NULL, -- JSON
	PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX call_record_by_skill ON call_record (tenant, skill, id);
