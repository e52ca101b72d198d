-- +goose Up

-- The host process that began the call, so that what it left can be settled when it
-- died. Empty in rows of before, which stand for their time.
ALTER TABLE idempotency_key ADD COLUMN instance TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX idempotency_key_left ON idempotency_key (instance, tenant, key) WHERE done = 0;
