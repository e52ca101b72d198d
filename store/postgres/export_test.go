package postgres

import "fmt"

// TakeTurn has a transaction of a test be one of a steward.
var TakeTurn = fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, %s)", slotsKey, schema)
