package client

import "time"

// A Key is an API key, without its secret.
type Key struct {
	ID         string    `json:"id"`
	Tenant     string    `json:"tenant,omitempty" doc:"none: the platform's"`
	Name       string    `json:"name"`
	Roles      []string  `json:"roles" nullable:"false"`
	Scopes     []string  `json:"scopes,omitempty" nullable:"false" doc:"narrow what the roles give; none: all of it"`
	Created    time.Time `json:"created"`
	CreatedBy  string    `json:"createdBy"`
	Expires    time.Time `json:"expires,omitzero" required:"false"`
	Revoked    time.Time `json:"revoked,omitzero" required:"false"`
	RevokedBy  string    `json:"revokedBy,omitempty"`
	ReplacedBy string    `json:"replacedBy,omitempty" doc:"id of the key that a rotation made in its place"`
	Used       time.Time `json:"used,omitzero" required:"false" doc:"last, to the minute"`
	State      string    `json:"state" enum:"in force,revoked,expired,invalid" doc:"when this was answered"`
}

// A NewKey says which key is to be made. Nobody hands on what he does not hold.
type NewKey struct {
	Name    string    `json:"name" minLength:"1" maxLength:"512" doc:"for people"`
	Roles   []string  `json:"roles" minItems:"1" maxItems:"8" nullable:"false" doc:"reader, operator, approver, admin; or platform alone"`
	Scopes  []string  `json:"scopes,omitempty" maxItems:"64" nullable:"false" doc:"narrow what the roles give"`
	Expires time.Time `json:"expires,omitzero" required:"false" doc:"none: it does not expire"`
}

// A MadeKey is a key with its secret, which is shown this once.
type MadeKey struct {
	Key    Key    `json:"key"`
	Secret string `json:"secret" doc:"shown this once: send it as Authorization: Bearer"`
}

// A Rotation replaces a key by another with the same rights.
type Rotation struct {
	OverlapSeconds *float64  `json:"overlapSeconds,omitempty" minimum:"0" maximum:"2592000" doc:"how long the old one holds still; none: a day; zero: it ends now"`
	Expires        time.Time `json:"expires,omitzero" required:"false" doc:"of the new one; none: it lives as long as the old one was to"`
}

// A Tenant is one that the platform made.
type Tenant struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	By      string    `json:"by"`
	Off     bool      `json:"off,omitempty" doc:"no credential of it is let in and nothing of it runs"`
	Deleted time.Time `json:"deleted,omitzero" required:"false" doc:"it was deleted for ever: nothing of it is kept but its entries in the log"`
	Quota   Quota     `json:"quota" doc:"zero or none: the host's"`
	Rates   Rates     `json:"rates" doc:"zero or none: the host's"`
}

// A Quota bounds what is kept for one tenant.
type Quota struct {
	Skills int   `json:"skills,omitempty" minimum:"0"`
	Bytes  int64 `json:"bytes,omitempty" minimum:"0" doc:"of all contents, each once"`
	Grants int   `json:"grants,omitempty" minimum:"0" doc:"references with a grant that is not revoked"`
	Keys   int   `json:"keys,omitempty" minimum:"0" doc:"neither revoked nor expired"`
}

// Rates bound how often a tenant may ask.
type Rates struct {
	Requests float64 `json:"requestsPerSecond,omitempty" minimum:"0"`
	Burst    int     `json:"burst,omitempty" minimum:"0"`
	Runs     float64 `json:"runsPerSecond,omitempty" minimum:"0"`
	RunBurst int     `json:"runBurst,omitempty" minimum:"0"`
}

// A NewTenant says which tenant is to be made.
type NewTenant struct {
	Name  string `json:"name" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$" doc:"lower-case letters and digits, with points, hyphens and underscores between, so that no two names are taken for one"`
	Quota Quota  `json:"quota,omitzero" required:"false"`
	Rates Rates  `json:"rates,omitzero" required:"false"`
}

// A TenantChange says what is to change; what is not there stays as it is.
type TenantChange struct {
	Off   *bool  `json:"off,omitempty"`
	Quota *Quota `json:"quota,omitempty"`
	Rates *Rates `json:"rates,omitempty"`
}

// A Deletion counts what was taken away with a tenant, or would be.
type Deletion struct {
	Keys     int    `json:"keys" minimum:"0"`
	Grants   int    `json:"grants" minimum:"0"`
	Skills   int    `json:"skills" minimum:"0"`
	Calls    uint64 `json:"calls" doc:"records of calls"`
	Contents uint64 `json:"contents" doc:"that no other tenant names or ever named"`
	UnderWay int    `json:"underWay" minimum:"0" doc:"runs: while there is one the tenant is not deleted"`
}
