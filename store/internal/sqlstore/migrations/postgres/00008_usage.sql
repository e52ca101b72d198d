-- +goose Up

-- What the calls of a day came to, counted with each record. The records that were
-- there before are not counted.
CREATE TABLE usage_sum (
	tenant    TEXT COLLATE "C" NOT NULL,
	day       BIGINT NOT NULL, -- days since 1970, UTC
	skill     TEXT COLLATE "C" NOT NULL,
	calls     BIGINT NOT NULL,
	succeeded BIGINT NOT NULL,
	duration  BIGINT NOT NULL, -- microseconds, as the next
	waited    BIGINT NOT NULL,
	output    BIGINT NOT NULL -- bytes
);

CREATE UNIQUE INDEX usage_sum_by_day ON usage_sum (tenant, day DESC, skill);
