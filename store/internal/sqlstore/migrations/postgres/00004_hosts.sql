-- +goose Up

-- The processes that run scripts, on whatever host. One whose lease has expired is
-- taken for dead; what it left is closed by another, which fences it first.
CREATE TABLE host_instance (
	n                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the fence: it rises with every start
	id               TEXT COLLATE "C" NOT NULL UNIQUE,
	size             BIGINT NOT NULL, -- of the log when it started
	expires          BIGINT NOT NULL, -- microseconds since 1970 by the clock of the database
	fenced           BIGINT NOT NULL CHECK (fenced IN (0, 1)),
	slots            BIGINT NOT NULL, -- its bounds; of those that live the smallest hold
	slots_per_tenant BIGINT NOT NULL,
	queue            BIGINT NOT NULL,
	queue_per_tenant BIGINT NOT NULL
);

-- One row for each call that is on its way to a slot or has one. It goes with its process.
CREATE TABLE slot_lease (
	n        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of their coming
	instance BIGINT NOT NULL REFERENCES host_instance (n) ON DELETE CASCADE,
	tenant   TEXT COLLATE "C" NOT NULL,
	waits    BIGINT NOT NULL CHECK (waits IN (0, 1)), -- 1 from when it passed the gates
	turn     BIGINT -- NULL while it has no slot; it rises with every slot that is given
);

CREATE INDEX slot_lease_by_tenant ON slot_lease (tenant);
CREATE INDEX slot_lease_by_instance ON slot_lease (instance);

CREATE SEQUENCE slot_turn;

-- When a tenant was served last, for those that have a lease.
CREATE TABLE slot_tenant (
	tenant TEXT COLLATE "C" PRIMARY KEY,
	turn   BIGINT NOT NULL
);
