// Package admin is what an operator does: switch, policy, grant, revoke, review,
// compare, import and delete, name runtimes, make tenants and keys. Each change writes
// its audit entry in its own transaction: the change and the entry stand together, or
// neither does.
package admin
