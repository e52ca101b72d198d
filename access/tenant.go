package access

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tracon-go/tracon/gate"
)

// A Tenant is one that the platform made. One that nobody made has no credential, and
// so asks for nothing through a door.
type Tenant struct {
	Name    string    `json:"name"` // see gate.CheckTenant
	Created time.Time `json:"created"`
	By      string    `json:"by"`

	// Off has no credential of the tenant let in, and no script of it run, whatever its
	// own policy says. What runs goes on; what waits for a slot is refused.
	Off bool `json:"off,omitempty"`

	// Deleted is when the tenant was deleted; zero: it was not. One that was deleted is
	// off for ever, gets nothing more, and its name is not given again: who came later
	// would be taken for it.
	Deleted time.Time `json:"deleted,omitzero"`

	Quota Quota `json:"quota,omitzero"` // zero fields: the host's
	Rates Rates `json:"rates,omitzero"` // zero fields: the host's
}

// A Quota bounds what is kept for one tenant. Zero means the host's, and there the
// default; a negative one is an error.
type Quota struct {
	Skills int   `json:"skills,omitempty"` // imported skills that are there; default 1,000
	Bytes  int64 `json:"bytes,omitempty"`  // of all contents that its versions and grants name, each once; default 4 GiB
	Grants int   `json:"grants,omitempty"` // references with a grant that is not revoked; default 10,000
	Keys   int   `json:"keys,omitempty"`   // keys that count (Key.Counts); default 100
}

// The quota of a tenant when neither the tenant nor the host has another.
const (
	DefaultSkills = 1000
	DefaultBytes  = 4 << 30
	DefaultGrants = 10_000
	DefaultKeys   = 100
)

// Or returns q with the fields of host where q has zero, and the defaults where both
// have.
func (q Quota) Or(host Quota) Quota {
	return Quota{
		Skills: first(q.Skills, host.Skills, DefaultSkills), Bytes: first(q.Bytes, host.Bytes, DefaultBytes),
		Grants: first(q.Grants, host.Grants, DefaultGrants), Keys: first(q.Keys, host.Keys, DefaultKeys),
	}
}

// A Usage is what is kept for one tenant, of what a [Quota] bounds.
type Usage struct {
	Skills int   `json:"skills"`
	Bytes  int64 `json:"bytes"`
	Grants int   `json:"grants"`
	Keys   int   `json:"keys"`
}

// ErrQuota is wrapped by the error for what is more than may be kept for the tenant. The
// text names which bound it is.
var ErrQuota = errors.New("access: the tenant's quota is used up")

// Fits says why more cannot be kept beside u, or nil. Zero fields of q mean the
// defaults. What more does not add to is not looked at, so that a quota which was
// lowered keeps nobody from what makes use smaller.
func (q Quota) Fits(u, more Usage) error {
	q = q.Or(Quota{})
	for _, b := range []struct {
		what             string
		used, more, most int64
	}{
		{"imported skills", int64(u.Skills), int64(more.Skills), int64(q.Skills)},
		{"bytes of contents", u.Bytes, more.Bytes, q.Bytes},
		{"grants", int64(u.Grants), int64(more.Grants), int64(q.Grants)},
		{"keys", int64(u.Keys), int64(more.Keys), int64(q.Keys)},
	} {
		if b.more > 0 && b.used > b.most-b.more {
			return fmt.Errorf("%w: %d %s are kept, this would be %d more, and it may have %d", ErrQuota, b.used, b.what, b.more, b.most)
		}
	}
	return nil
}

// Rates bound how often a tenant may ask. Zero means the host's; a negative one is an
// error. It is the door that holds them.
type Rates struct {
	Requests float64 `json:"requestsPerSecond,omitempty"` // of the tenant's keys together
	Burst    int     `json:"burst,omitempty"`             // requests at once
	Runs     float64 `json:"runsPerSecond,omitempty"`     // runs that are started
	RunBurst int     `json:"runBurst,omitempty"`          // runs at once
}

// Or returns r with the fields of host where r has zero.
func (r Rates) Or(host Rates) Rates {
	return Rates{
		Requests: first(r.Requests, host.Requests), Burst: first(r.Burst, host.Burst),
		Runs: first(r.Runs, host.Runs), RunBurst: first(r.RunBurst, host.RunBurst),
	}
}

func first[T int | int64 | float64](values ...T) T {
	for _, v := range values {
		if v != 0 {
			return v
		}
	}
	return 0
}

// maxRate is above every rate that means something: more is a slip of the pen.
const maxRate = 1e6

// Validate says why t cannot be a tenant, or nil. The error wraps ErrInvalid, or
// grant.ErrRef for a name.
func (t Tenant) Validate() error {
	if err := gate.CheckTenant(t.Name); err != nil {
		return err
	}
	switch q, r := t.Quota, t.Rates; {
	case t.By == "":
		return fmt.Errorf("%w: nobody made the tenant %q", ErrInvalid, t.Name)
	case t.Created.IsZero():
		return fmt.Errorf("%w: tenant %q has no time", ErrInvalid, t.Name)
	case !t.Deleted.IsZero() && !t.Off:
		return fmt.Errorf("%w: tenant %q was deleted, and stays off", ErrInvalid, t.Name)
	case q.Skills < 0 || q.Bytes < 0 || q.Grants < 0 || q.Keys < 0:
		return fmt.Errorf("%w: a quota of tenant %q is below zero; zero means the host's", ErrInvalid, t.Name)
	case !rate(r.Requests) || !rate(r.Runs) || !rate(float64(r.Burst)) || !rate(float64(r.RunBurst)):
		return fmt.Errorf("%w: a rate of tenant %q is below zero or above %g; zero means the host's", ErrInvalid, t.Name, maxRate)
	}
	return nil
}

func rate(r float64) bool { return r >= 0 && r <= maxRate && !math.IsNaN(r) }
