-- +goose Up

-- The tenants that somebody made. A row changes with its revision.
CREATE TABLE tenant_setting (
	tenant   TEXT COLLATE "C" PRIMARY KEY,
	revision BIGINT NOT NULL,
	setting  TEXT COLLATE "C" NOT NULL -- JSON, and behind a line feed its sum
);

-- API keys. None is ever taken away.
CREATE TABLE api_key (
	n      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of their coming: the greatest of a tenant is the newest
	id     TEXT COLLATE "C" NOT NULL UNIQUE,
	tenant TEXT COLLATE "C" NOT NULL, -- empty: the platform's
	rest   TEXT COLLATE "C" NOT NULL, -- JSON, and behind a line feed its sum
	used   BIGINT                     -- microseconds since 1970, coarse; NULL for never
);

CREATE INDEX api_key_by_tenant ON api_key (tenant, n);

-- Which call a client's key stood for. Rows go when their time is over; no entry tells
-- of them.
CREATE TABLE idempotency_key (
	tenant TEXT COLLATE "C" NOT NULL,
	key    TEXT COLLATE "C" NOT NULL,
	body   BYTEA NOT NULL, -- its digest
	run    TEXT COLLATE "C" NOT NULL,
	begun  BIGINT NOT NULL, -- microseconds since 1970
	done   BIGINT NOT NULL CHECK (done IN (0, 1)),
	large  BIGINT NOT NULL CHECK (large IN (0, 1)),
	answer BYTEA,          -- NULL for none that was kept
	sum    BYTEA NOT NULL, -- of what the row says
	PRIMARY KEY (tenant, key)
);

CREATE INDEX idempotency_key_by_begun ON idempotency_key (begun);
CREATE INDEX idempotency_key_large ON idempotency_key (tenant) WHERE large = 1;
