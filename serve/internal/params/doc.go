// Package params reads what the operations of the management API have in common: the
// cursors of lists, and the ETags that a change names with If-Match.
package params
