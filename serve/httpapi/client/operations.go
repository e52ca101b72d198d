package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Changes take the ETag of the state that they change, as it came with that state; an
// empty one means whatever is there now.

// Whoami returns who the client's credential is.
func (c *Client) Whoami(ctx context.Context) (Whoami, error) {
	return get[Whoami](ctx, c, "/v1/whoami", nil)
}

// Version returns the server's version.
func (c *Client) Version(ctx context.Context) (ServerVersion, error) {
	return get[ServerVersion](ctx, c, "/v1/version", nil)
}

// Grants returns the tenant's grants, the newest first: of one skill where skill is
// not empty, and at most limit where that is not zero.
func (c *Client) Grants(ctx context.Context, skill string, limit int) ([]Grant, error) {
	return all[Grant](ctx, c, "/v1/grants", params("skill", skill), limit)
}

// Grant returns a grant and its ETag.
func (c *Client) Grant(ctx context.Context, id string) (g Grant, etag string, err error) {
	etag, err = c.call(ctx, request{method: http.MethodGet, path: path("v1", "grants", id)}, &g)
	return g, etag, err
}

// CreateGrant grants what was reviewed.
func (c *Client) CreateGrant(ctx context.Context, n NewGrant) (g Grant, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/grants", body: n}, &g)
	return g, err
}

// RevokeGrant takes a grant back.
func (c *Client) RevokeGrant(ctx context.Context, id, etag, reason string) (g Grant, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: path("v1", "grants", id, "revoke"), match: orAny(etag), body: Revocation{reason}}, &g)
	return g, err
}

// Review returns what a reviewer reads of the skill's script, or of all its scripts
// where script is empty; with the files' contents where content is true.
func (c *Client) Review(ctx context.Context, skill, script string, content bool) (Review, error) {
	q := params("skill", skill, "script", script)
	if script == "" {
		q.Set("allScripts", "true")
	}
	if content {
		q.Set("content", "true")
	}
	return get[Review](ctx, c, "/v1/review", q)
}

// Difference returns what has changed since the script, or the whole skill where
// script is empty, was granted.
func (c *Client) Difference(ctx context.Context, skill, script string) (Difference, error) {
	q := params("skill", skill, "script", script)
	if script == "" {
		q.Set("allScripts", "true")
	}
	return get[Difference](ctx, c, "/v1/difference", q)
}

// Explain asks every gate about a call, and runs nothing.
func (c *Client) Explain(ctx context.Context, e Explain) (out Explained, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/explain", body: e}, &out)
	return out, err
}

// Skills returns the skills that the tenant has, by name.
func (c *Client) Skills(ctx context.Context) ([]SkillSummary, error) {
	return all[SkillSummary](ctx, c, "/v1/skills", nil, 0)
}

// Skill returns a skill as it is now, or as the version was whose id, or whose
// content's digest, begins so; with the files' contents where content is true. The
// ETag is that of its newest version.
func (c *Client) Skill(ctx context.Context, name, version string, content bool) (s Skill, etag string, err error) {
	q := params("version", version)
	if content {
		q.Set("content", "true")
	}
	etag, err = c.call(ctx, request{method: http.MethodGet, path: path("v1", "skills", name), query: q}, &s)
	return s, etag, err
}

// SkillFile writes one file of a skill to w; version as for Skill.
func (c *Client) SkillFile(ctx context.Context, name, version, file string, w io.Writer) error {
	return c.download(ctx, request{method: http.MethodGet, path: path("v1", "skills", name, "file"), query: params("path", file, "version", version)}, w)
}

// ImportZip imports a skill from a zip archive.
func (c *Client) ImportZip(ctx context.Context, archive io.Reader, source, reason string) (i Imported, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/imports/zip", raw: archive, kind: "application/zip",
		query: params("source", source, "reason", reason)}, &i)
	return i, err
}

// ImportFiles imports a skill from its files.
func (c *Client) ImportFiles(ctx context.Context, f FilesImport) (i Imported, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/imports/files", body: f}, &i)
	return i, err
}

// ImportScript imports a single script as a skill of its own.
func (c *Client) ImportScript(ctx context.Context, s ScriptImport) (i Imported, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/imports/script", body: s}, &i)
	return i, err
}

// ExportSkill writes a skill as a zip archive to w; version as for Skill.
func (c *Client) ExportSkill(ctx context.Context, name, version string, w io.Writer) error {
	return c.download(ctx, request{method: http.MethodGet, path: path("v1", "skills", name, "export"), query: params("version", version)}, w)
}

// History returns the versions of a skill, the newest first.
func (c *Client) History(ctx context.Context, name string) ([]Version, error) {
	return all[Version](ctx, c, path("v1", "skills", name, "history"), nil, 0)
}

// DiffSkill compares two versions of a skill, each as for Skill: the newest and the one
// before it where both are empty.
func (c *Client) DiffSkill(ctx context.Context, name, old, now string) (VersionDifference, error) {
	return get[VersionDifference](ctx, c, path("v1", "skills", name, "diff"), params("old", old, "new", now))
}

// Lint says what is amiss with a skill.
func (c *Client) Lint(ctx context.Context, name string) (Lint, error) {
	return get[Lint](ctx, c, path("v1", "skills", name, "lint"), nil)
}

// DeleteSkill takes an imported skill away; its history stays.
func (c *Client) DeleteSkill(ctx context.Context, name, etag, reason string) (v Version, err error) {
	_, err = c.call(ctx, request{method: http.MethodDelete, path: path("v1", "skills", name), query: params("reason", reason), match: orAny(etag)}, &v)
	return v, err
}

// Policy returns the tenant's policy and its ETag.
func (c *Client) Policy(ctx context.Context) (p Policy, etag string, err error) {
	etag, err = c.call(ctx, request{method: http.MethodGet, path: "/v1/policy"}, &p)
	return p, etag, err
}

// ChangePolicy changes the tenant's policy.
func (c *Client) ChangePolicy(ctx context.Context, etag string, change PolicyChange) (p Policy, err error) {
	_, err = c.call(ctx, request{method: http.MethodPatch, path: "/v1/policy", match: orAny(etag), body: change}, &p)
	return p, err
}

// Host returns the host's settings and their ETag.
func (c *Client) Host(ctx context.Context) (h Host, etag string, err error) {
	etag, err = c.call(ctx, request{method: http.MethodGet, path: "/v1/host"}, &h)
	return h, etag, err
}

// ChangeHost changes the host's settings.
func (c *Client) ChangeHost(ctx context.Context, etag string, change HostChange) (h Host, err error) {
	_, err = c.call(ctx, request{method: http.MethodPatch, path: "/v1/host", match: orAny(etag), body: change}, &h)
	return h, err
}

// Posture returns which walls stand on the host.
func (c *Client) Posture(ctx context.Context) (Posture, error) {
	return get[Posture](ctx, c, "/v1/posture", nil)
}

// Ready returns whether scripts can run; why not, to the platform alone.
func (c *Client) Ready(ctx context.Context) (Readiness, error) {
	return get[Readiness](ctx, c, "/v1/readiness", nil)
}

// Runtimes returns the host's runtimes, by name.
func (c *Client) Runtimes(ctx context.Context) ([]Runtime, error) {
	return all[Runtime](ctx, c, "/v1/runtimes", nil, 0)
}

// Runtime returns one runtime and its ETag.
func (c *Client) Runtime(ctx context.Context, name string) (r Runtime, etag string, err error) {
	etag, err = c.call(ctx, request{method: http.MethodGet, path: path("v1", "runtimes", name)}, &r)
	return r, etag, err
}

// ImportRuntime imports a root file system from a tar archive and names it. Platform is what
// an image in layers must be made for, such as linux/arm64; empty: [Host.Platform].
func (c *Client) ImportRuntime(ctx context.Context, name string, replace bool, reason, platform string, archive io.Reader) (i ImportedRuntime, err error) {
	q := params("reason", reason, "platform", platform)
	if replace {
		q.Set("replace", "true")
	}
	_, err = c.call(ctx, request{method: http.MethodPost, path: path("v1", "runtimes", name), query: q, raw: archive, kind: "application/x-tar"}, &i)
	return i, err
}

// RemoveRuntime takes a runtime's name away.
func (c *Client) RemoveRuntime(ctx context.Context, name, etag, reason string) (r RemovedRuntime, err error) {
	_, err = c.call(ctx, request{method: http.MethodDelete, path: path("v1", "runtimes", name), query: params("reason", reason), match: orAny(etag)}, &r)
	return r, err
}

// Entries returns a part of the log: the tenant's entries, or the host's own for the
// platform, the oldest first. Cursor is next of the part before. A part may have fewer
// items than limit, and none, while there are more.
func (c *Client) Entries(ctx context.Context, f EntryFilter, cursor string, limit int) (Page[Entry], error) {
	return get[Page[Entry]](ctx, c, "/v1/audit/entries", f.query(cursor, limit))
}

func (f EntryFilter) query(cursor string, limit int) url.Values {
	q := params("kind", strings.Join(f.Kinds, ","), "run", f.Run, "actor", f.Actor, "subject", f.Subject, "since", moment(f.Since), "until", moment(f.Until), "cursor", cursor)
	if f.From > 0 {
		q.Set("from", number(f.From))
	}
	if f.Leaf {
		q.Set("leaf", "true")
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Prove returns the receipt of an entry of the tenant, or of the host's own.
func (c *Client) Prove(ctx context.Context, index uint64) (Receipt, error) {
	return get[Receipt](ctx, c, path("v1", "audit", "entries", number(index), "receipt"), nil)
}

// CheckReceipt says whether a receipt holds and the log goes on from it.
func (c *Client) CheckReceipt(ctx context.Context, receipt string) (r ReceiptChecked, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/audit/receipts/check", body: ReceiptCheck{receipt}}, &r)
	return r, err
}

// Checkpoint signs the log as it is now.
func (c *Client) Checkpoint(ctx context.Context) (k Checkpoint, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/audit/checkpoint"}, &k)
	return k, err
}

// VerifyLog has the server compute the whole log again.
func (c *Client) VerifyLog(ctx context.Context) (v Verified, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/audit/verify"}, &v)
	return v, err
}

// of is the path of keys: the credential's own, or, for the platform, a tenant's.
func of(tenant string, more ...string) string {
	if tenant == "" {
		return path(append([]string{"v1", "keys"}, more...)...)
	}
	return path(append([]string{"v1", "tenants", tenant, "keys"}, more...)...)
}

// Keys returns the keys of the credential's tenant, or the platform's own, the newest
// first. The platform names a tenant to see that one's.
func (c *Client) Keys(ctx context.Context, tenant string) ([]Key, error) {
	return all[Key](ctx, c, of(tenant), nil, 0)
}

// Key returns a key and its ETag; tenant as for Keys.
func (c *Client) Key(ctx context.Context, tenant, id string) (k Key, etag string, err error) {
	etag, err = c.call(ctx, request{method: http.MethodGet, path: of(tenant, id)}, &k)
	return k, etag, err
}

// CreateKey makes a key; tenant as for Keys.
func (c *Client) CreateKey(ctx context.Context, tenant string, n NewKey) (k MadeKey, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: of(tenant), body: n}, &k)
	return k, err
}

// RotateKey makes a key with the same rights, and has the old one end; tenant as for Keys.
func (c *Client) RotateKey(ctx context.Context, tenant, id, etag string, r Rotation) (k MadeKey, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: of(tenant, id, "rotate"), match: orAny(etag), body: r}, &k)
	return k, err
}

// RevokeKey takes a key back; tenant as for Keys.
func (c *Client) RevokeKey(ctx context.Context, tenant, id, etag, reason string) (k Key, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: of(tenant, id, "revoke"), match: orAny(etag), body: Revocation{reason}}, &k)
	return k, err
}

// Tenants returns the tenants, by name.
func (c *Client) Tenants(ctx context.Context) ([]Tenant, error) {
	return all[Tenant](ctx, c, "/v1/tenants", nil, 0)
}

// Tenant returns a tenant and its ETag.
func (c *Client) Tenant(ctx context.Context, name string) (t Tenant, etag string, err error) {
	etag, err = c.call(ctx, request{method: http.MethodGet, path: path("v1", "tenants", name)}, &t)
	return t, etag, err
}

// CreateTenant makes a tenant.
func (c *Client) CreateTenant(ctx context.Context, n NewTenant) (t Tenant, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: "/v1/tenants", body: n}, &t)
	return t, err
}

// ChangeTenant changes a tenant.
func (c *Client) ChangeTenant(ctx context.Context, name, etag string, change TenantChange) (t Tenant, err error) {
	_, err = c.call(ctx, request{method: http.MethodPatch, path: path("v1", "tenants", name), match: orAny(etag), body: change}, &t)
	return t, err
}

// PreviewDeletion says what deleting the tenant would take away.
func (c *Client) PreviewDeletion(ctx context.Context, name string) (d Deletion, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: path("v1", "tenants", name, "deletion")}, &d)
	return d, err
}

// DeleteTenant deletes the tenant for ever.
func (c *Client) DeleteTenant(ctx context.Context, name, etag, reason string) (d Deletion, err error) {
	_, err = c.call(ctx, request{method: http.MethodDelete, path: path("v1", "tenants", name), query: params("reason", reason), match: orAny(etag)}, &d)
	return d, err
}

// download writes the body of an answer to w. An archive that was cut off has no end,
// so a short one is an error.
func (c *Client) download(ctx context.Context, r request, w io.Writer) error {
	res, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(w, res.Body)
	return err
}
