// Package access says who asks and what that one may do: tenants, principals with
// their roles, and API keys. It knows nothing of HTTP; a door makes a [Principal] of
// a credential and asks it before it does anything.
package access
