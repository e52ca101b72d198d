package access_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/tracon-go/tracon/access"
)

// B10: what is kept fits to the last one, and what makes less is never refused.
func TestQuotaFits(t *testing.T) {
	q := access.Quota{Skills: 2, Bytes: 10, Grants: 3, Keys: 4}
	for _, tt := range []struct {
		name      string
		q         access.Quota
		used, add access.Usage
		ok        bool
	}{
		{"nothing", q, access.Usage{}, access.Usage{}, true},
		{"the last skill", q, access.Usage{Skills: 1}, access.Usage{Skills: 1}, true},
		{"one too many", q, access.Usage{Skills: 2}, access.Usage{Skills: 1}, false},
		{"the last byte", q, access.Usage{Bytes: 4}, access.Usage{Bytes: 6}, true},
		{"a byte too many", q, access.Usage{Bytes: 4}, access.Usage{Bytes: 7}, false},
		{"a number that would turn over", q, access.Usage{Bytes: math.MaxInt64}, access.Usage{Bytes: math.MaxInt64}, false},
		{"grants", q, access.Usage{Grants: 3}, access.Usage{Grants: 1}, false},
		{"keys", q, access.Usage{Keys: 4}, access.Usage{Keys: 1}, false},
		{"over the quota, and nothing more of it", q, access.Usage{Skills: 9, Bytes: 99}, access.Usage{Grants: 1}, true},
		{"zero is the default", access.Quota{}, access.Usage{Keys: access.DefaultKeys - 1}, access.Usage{Keys: 1}, true},
		{"zero is not without bound", access.Quota{}, access.Usage{Keys: access.DefaultKeys}, access.Usage{Keys: 1}, false},
	} {
		if err := tt.q.Fits(tt.used, tt.add); (err == nil) != tt.ok || err != nil && !errors.Is(err, access.ErrQuota) {
			t.Errorf("%s: got %v, want ok: %t", tt.name, err, tt.ok)
		}
	}
}

// A tenant's own counts, then the host's, then the default.
func TestQuotaOr(t *testing.T) {
	got := access.Quota{Skills: 1}.Or(access.Quota{Skills: 2, Bytes: 3})
	if want := (access.Quota{Skills: 1, Bytes: 3, Grants: access.DefaultGrants, Keys: access.DefaultKeys}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	rates := access.Rates{Burst: 1}.Or(access.Rates{Burst: 2, Runs: 3})
	if want := (access.Rates{Burst: 1, Runs: 3}); rates != want {
		t.Errorf("got %+v, want %+v", rates, want)
	}
}

// T15: what is no tenant is not kept, nor is one that was deleted and would be let in.
func TestTenantValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*access.Tenant)
		ok     bool
	}{
		{"good", func(*access.Tenant) {}, true},
		{"off", func(x *access.Tenant) { x.Off = true }, true},
		{"deleted", func(x *access.Tenant) { x.Off, x.Deleted = true, now }, true},
		{"deleted, and not off", func(x *access.Tenant) { x.Deleted = now }, false},
		{"a rate", func(x *access.Tenant) { x.Rates.Requests = 0.01 }, true},
		{"zero", func(x *access.Tenant) { *x = access.Tenant{} }, false},
		{"the host's name", func(x *access.Tenant) { x.Name = "@host" }, false},
		{"a control character", func(x *access.Tenant) { x.Name = "a\x1bb" }, false},
		{"nobody made it", func(x *access.Tenant) { x.By = "" }, false},
		{"no time", func(x *access.Tenant) { x.Created = time.Time{} }, false},
		{"a quota below zero", func(x *access.Tenant) { x.Quota.Bytes = -1 }, false},
		{"a rate below zero", func(x *access.Tenant) { x.Rates.Runs = -1 }, false},
		{"a rate that is no number", func(x *access.Tenant) { x.Rates.Requests = math.NaN() }, false},
		{"a rate without end", func(x *access.Tenant) { x.Rates.Requests = math.Inf(1) }, false},
		{"a burst below zero", func(x *access.Tenant) { x.Rates.RunBurst = -1 }, false},
	} {
		x := access.Tenant{Name: "t", Created: now, By: "ann"}
		tt.change(&x)
		if err := x.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want ok: %t", tt.name, err, tt.ok)
		}
	}
}
