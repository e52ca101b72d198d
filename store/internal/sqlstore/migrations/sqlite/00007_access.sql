-- +goose Up

-- The tenants that somebody made. A row changes with its revision.
CREATE TABLE tenant_setting (
	tenant   TEXT    PRIMARY KEY,
	revision INTEGER NOT NULL,
	setting  TEXT    NOT NULL -- JSON, and behind a line feed its sum
) STRICT;

-- API keys. None is ever taken away.
CREATE TABLE api_key (
	n      INTEGER PRIMARY KEY, -- the order of their coming: the greatest of a tenant is the newest
	id     TEXT    NOT NULL UNIQUE,
	tenant TEXT    NOT NULL,    -- empty: the platform's
	rest   TEXT    NOT NULL,    -- JSON, and behind a line feed its sum
	used   INTEGER              -- microseconds since 1970, coarse; NULL for never
) STRICT;

CREATE INDEX api_key_by_tenant ON api_key (tenant, n);

-- Which call a client's key stood for. Rows go when their time is over; no entry tells
-- of them.
CREATE TABLE idempotency_key (
	tenant TEXT    NOT NULL,
	key    TEXT    NOT NULL,
	body   BLOB    NOT NULL, -- its digest
	run    TEXT    NOT NULL,
	begun  INTEGER NOT NULL, -- microseconds since 1970
	done   INTEGER NOT NULL CHECK (done IN (0, 1)),
	large  INTEGER NOT NULL CHECK (large IN (0, 1)),
	answer BLOB,             -- NULL for none that was kept
	sum    BLOB    NOT NULL, -- of what the row says
	PRIMARY KEY (tenant, key)
) STRICT;

CREATE INDEX idempotency_key_by_begun ON idempotency_key (begun);
CREATE INDEX idempotency_key_large ON idempotency_key (tenant) WHERE large = 1;
