-- +goose Up

-- What the calls of a day came to, counted with each record. The records that were
-- there before are not counted.
CREATE TABLE usage_sum (
	tenant    TEXT    NOT NULL,
	day       INTEGER NOT NULL, -- days since 1970, UTC
	skill     TEXT    NOT NULL,
	calls     INTEGER NOT NULL,
	succeeded INTEGER NOT NULL,
	duration  INTEGER NOT NULL, -- microseconds, as the next
	waited    INTEGER NOT NULL,
	output    INTEGER NOT NULL, -- bytes
	PRIMARY KEY (tenant, day DESC, skill)
) STRICT, WITHOUT ROWID;
