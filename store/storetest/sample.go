package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/toolcall"
)

// at is a time in another zone than UTC and finer than what is kept.
var at = time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("", 3600))

// kept is how t comes back.
func kept(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// content returns a content that differs from those of other names.
func content(name string) bundle.Bundle {
	b, err := bundle.New([]bundle.File{
		{Path: "SKILL.md", Data: []byte("---\nname: " + name + "\n---\n")},
		{Path: "assets/empty", Data: nil},
		{Path: "assets/ünï/bytes.bin", Data: []byte{0, 0xff, 0xfe, '\'', '"', '\n'}},
		{Path: "scripts/a.py", Data: []byte("print(1)\n")},
		{Path: "scripts/copy.py", Data: []byte("print(1)\n")},
	}, []byte("mode: argv\n"), bundle.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}

// bare returns a content of one file and no declaration.
func bare(name string) bundle.Bundle {
	b, err := bundle.New([]bundle.File{{Path: name, Data: []byte(name)}}, nil, bundle.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}

// pair returns a content of two files that no other has.
func pair(name string) bundle.Bundle {
	b, err := bundle.New([]bundle.File{{Path: "a.py", Data: []byte(name)}, {Path: "z.py", Data: []byte(name + "'s last")}}, nil, bundle.Limits{})
	if err != nil {
		panic(err)
	}
	return b
}

// A once is a content that can be read one file at a time alone, and tells which
// was read twice.
type once struct {
	bundle.Bundle
	read  map[string]bool
	again string
}

func (o *once) ReadFile(path string) ([]byte, error) {
	if o.read[path] {
		o.again = path
	}
	o.read[path] = true
	return o.Bundle.ReadFile(path)
}

var errUnread = errors.New("the medium is gone")

// An unread is a content whose last file cannot be read.
type unread struct{ bundle.Bundle }

func (u unread) ReadFile(path string) ([]byte, error) {
	if paths := u.Paths(); path == paths[len(paths)-1] {
		return nil, errUnread
	}
	return u.Bundle.ReadFile(path)
}

// A bent is a content whose last file is not the one that it lists.
type bent struct{ bundle.Bundle }

func (b bent) ReadFile(path string) ([]byte, error) {
	data, err := b.Bundle.ReadFile(path)
	if paths := b.Paths(); path == paths[len(paths)-1] {
		data[0]++
	}
	return data, err
}

func script(tenant, name string) grant.Ref {
	return grant.Ref{Tenant: tenant, Skill: "unit-converter", Script: name}
}

func allOf(tenant string) grant.Ref {
	return grant.Ref{Tenant: tenant, Skill: "unit-converter", AllScripts: true}
}

// grantOf returns a grant of ref that pins c.
func grantOf(id string, ref grant.Ref, c bundle.Bundle) grant.Grant {
	return grant.Grant{
		ID: id, Ref: ref, Pin: c.Digest(), Reason: "it's \"needed\"; -- ünï", Source: "skills/unit-converter",
		GrantedBy: "operator", Granted: at, Expires: at.Add(time.Hour), MinTier: grant.Sandbox,
	}
}

// grant adds a grant behind the newest that there is.
func (k *kit) grant(id string, ref grant.Ref, c bundle.Bundle) grant.Grant {
	k.Helper()
	g := grantOf(id, ref, c)
	k.must(k.addGrant(g, c, k.newest(ref).ID))
	g.Granted, g.Expires = kept(g.Granted), kept(g.Expires)
	return g
}

func (k *kit) addGrant(g grant.Grant, c bundle.Bundle, after string) error {
	return k.commit(g.Ref.Tenant, audit.Granted, func(ctx context.Context, p audit.Pending) error {
		return k.store.AddGrant(ctx, g, c, after, p)
	})
}

func (k *kit) revoke(tenant, id string) error {
	return k.commit(tenant, audit.Revoked, func(ctx context.Context, p audit.Pending) error {
		return k.store.RevokeGrant(ctx, tenant, id, at, "revoker", p)
	})
}

// newest returns the newest grant of ref, and the zero Grant where there is none.
func (k *kit) newest(ref grant.Ref) grant.Grant {
	k.Helper()
	g, err := k.store.Grant(k.Context(), ref)
	if err != nil {
		k.wants(err, grant.ErrNotFound, "the newest grant of %s", ref)
		if !reflect.ValueOf(g).IsZero() {
			k.broken("with an error came a grant: %+v", g)
		}
	}
	return g
}

func host() gate.Host {
	return gate.Host{
		Enabled: true, TrustClaimed: true,
		Interpreters: map[string]gate.Interpreter{
			"py": {Path: "/usr/bin/python3", Digest: bundle.Sum([]byte("python"))},
			"js": {Name: "node-22"},
			"sh": {Name: "small", Path: "/bin/sh", Digest: bundle.Sum([]byte("sh")), Image: bundle.Sum([]byte("root"))},
		},
		Runtimes: map[string]bundle.Digest{"small": bundle.Sum([]byte("root"))}, Network: gate.Loopback, RequireWalls: []string{"files, second layer", "memory"},
		Content: bundle.Limits{FileBytes: 1, TotalBytes: 2, Files: 3, Depth: 4, PathBytes: 5},
	}
}

func (k *kit) setHost(h gate.Host, after int64) error {
	return k.commit(hostTenant, audit.Host, func(ctx context.Context, p audit.Pending) error {
		return k.store.SetHost(ctx, h, after, p)
	})
}

func policy() gate.Policy {
	return gate.Policy{
		Network: gate.Loopback, RequireWalls: []string{"memory", "processor time"},
		Enabled: true, Interpreters: []string{"py", "js"}, MinTier: grant.VM, MaxArguments: 1, MaxOutput: 2, MaxInputs: 3, MaxOutputs: 4,
		MaxOutputFiles: 5, Timeout: 1234567 * time.Microsecond, Memory: 1 << 40, Processes: 7, KeepArguments: true,
		Environment: map[string]string{"UNIT": "it's \"ünï\"\n"}, Secrets: []string{"UNIT"},
	}
}

func (k *kit) setPolicy(tenant string, p gate.Policy, after int64) error {
	return k.commit(tenant, audit.Policy, func(ctx context.Context, entry audit.Pending) error {
		return k.store.SetPolicy(ctx, tenant, p, after, entry)
	})
}

// versionOf returns a version of the tenant's skill with content c.
func versionOf(tenant, id, skill string, c bundle.Bundle) admin.Version {
	return admin.Version{
		ID: id, Tenant: tenant, Skill: skill, Digest: c.Digest(), Source: "skills/it's \"here\"; -- ünï", Reason: "it's \"needed\"",
		Imported: at, By: "importer",
	}
}

func deletionOf(tenant, id, skill string) admin.Version {
	v := versionOf(tenant, id, skill, bundle.Bundle{})
	v.Deleted = true
	return v
}

func (k *kit) addVersion(v admin.Version, c bundle.Content, after string) error {
	return k.commit(v.Tenant, audit.Imported, func(ctx context.Context, p audit.Pending) error {
		return k.store.AddVersion(ctx, v, c, after, p)
	})
}

func record(tenant, id string) toolcall.Record {
	return toolcall.Record{
		ID: id, Tenant: tenant, Actor: "model", Skill: "unit-converter", Script: "scripts/convert.py",
		Digest: bundle.Sum([]byte("closure")), ScriptDigest: bundle.Sum([]byte("script")), Grant: "grant", Executor: "process", Tier: "process",
		ArgumentsBytes: 12, ArgumentsDigest: bundle.Sum([]byte("arguments")), ArgumentsSalt: []byte{0, 1, 0xff},
		Arguments: `["--value","ünï <&>"]`, Admitted: at, Ended: at.Add(time.Second), Waited: 1, Duration: 2*time.Second + 3, Ending: "exited",
		ExitCode: new(3), Signal: new(9), Abandoned: true, StdoutBytes: 4, StderrBytes: 5, OutputFiles: 6, OutputBytes: 1 << 40, Truncated: true,
		Notes: []string{"a note", "another"}, AdmissionIndex: 8,
	}
}

func (k *kit) addCall(r toolcall.Record) error {
	return k.commit(r.Tenant, audit.Ending, func(ctx context.Context, p audit.Pending) error {
		return k.store.AddCall(ctx, r, p)
	})
}

// whole ends the check when a field of sample is zero: a field that is new in
// the type must be in the sample, so that a store that forgets it is found.
func (k *kit) whole(sample any, but ...string) {
	k.Helper()
	v := reflect.ValueOf(sample)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() && !slices.Contains(but, name) {
			k.Fatalf("storetest: the sample of %T has no %s", sample, name)
		}
	}
}

// equal takes an empty list or map for none, and errors by their text.
var equal = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
	cmp.Comparer(func(a, b audit.Frontier) bool { return a.Size() == b.Size() && a.Root() == b.Root() }),
	cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
}

// same ends the check when got is not equal to want.
func (k *kit) same(what string, got, want any) {
	k.Helper()
	if d := cmp.Diff(want, got, equal); d != "" {
		k.broken("%s (-want +got):\n%s", what, d)
	}
}

// id returns ids that rise with n.
func id(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }
