package client

import (
	"context"
	"net/http"
)

// A Checked is what looking at everything that is kept found.
type Checked struct {
	OK       bool        `json:"ok"`
	Report   CheckReport `json:"report"`
	Findings []Finding   `json:"findings" nullable:"false" doc:"the first 500"`
}

// A CheckReport counts what was read.
type CheckReport struct {
	Entries  uint64 `json:"entries"`
	Tenants  uint64 `json:"tenants"`
	Grants   uint64 `json:"grants"`
	Versions uint64 `json:"versions"`
	Keys     uint64 `json:"keys"`
	Records  uint64 `json:"records"`
	Contents uint64 `json:"contents"`
	Running  uint64 `json:"running" doc:"calls under way"`
	Findings uint64 `json:"findings"`
}

// A Finding is one thing that is not as it must be.
type Finding struct {
	Invariant string  `json:"invariant" doc:"which one is broken, such as I6"`
	Tenant    string  `json:"tenant,omitempty"`
	Entry     *uint64 `json:"entry,omitempty" doc:"index of the entry that it is about"`
	What      string  `json:"what"`
	Remedy    string  `json:"remedy"`
}

// Retention says how long what is kept beside the log stays; nil is the host's own.
type Retention struct {
	Contents *float64 `json:"contentsSeconds,omitempty" minimum:"0" maximum:"9000000000" doc:"a content that no grant in force and no imported skill needs; 0: for ever, else at least 172800"`
	Calls    *float64 `json:"callsSeconds,omitempty" minimum:"0" maximum:"9000000000" doc:"the record of a call, since its ending; 0: for ever"`
	Details  *float64 `json:"detailsSeconds,omitempty" minimum:"0" maximum:"9000000000" doc:"the details of a record, since its ending; 0: for ever"`
}

// An Erasure counts what was erased, or would be.
type Erasure struct {
	Contents uint64 `json:"contents"`
	Calls    uint64 `json:"calls"`
	Details  uint64 `json:"details" doc:"records that stay without their details"`
}

// A LogKeyRotation says why the log's key is replaced.
type LogKeyRotation struct {
	Reason string `json:"reason,omitempty" maxLength:"4096"`
}

// A LogKey is the public key that signs the log.
type LogKey struct {
	Key string `json:"key"`
}

// AllEntries returns a part of the entries of every tenant and of the host; see Entries.
func (c *Client) AllEntries(ctx context.Context, f EntryFilter, cursor string, limit int) (Page[Entry], error) {
	return get[Page[Entry]](ctx, c, "/v1/log/entries", f.query(cursor, limit))
}

// ProveAny returns the receipt of an entry, whosever it is.
func (c *Client) ProveAny(ctx context.Context, index uint64) (Receipt, error) {
	return get[Receipt](ctx, c, path("v1", "log", "entries", number(index), "receipt"), nil)
}

// Check has the server compare everything that is kept with the log.
func (c *Client) Check(ctx context.Context) (k Checked, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/fsck"}, &k)
	return k, err
}

// Retention returns how long what is kept stays.
func (c *Client) Retention(ctx context.Context) (Retention, error) {
	return get[Retention](ctx, c, "/v1/retention", nil)
}

// PreviewErasure counts what is over its time.
func (c *Client) PreviewErasure(ctx context.Context, r Retention) (e Erasure, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/retention/preview", body: r}, &e)
	return e, err
}

// Erase erases what is over its time, of every tenant.
func (c *Client) Erase(ctx context.Context, r Retention) (e Erasure, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/retention/apply", body: r}, &e)
	return e, err
}

// RotateLogKey replaces the key that signs the log.
func (c *Client) RotateLogKey(ctx context.Context, reason string) (k LogKey, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/audit/rotate-key", body: LogKeyRotation{reason}}, &k)
	return k, err
}
