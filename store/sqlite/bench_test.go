package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store/sqlite"
	"github.com/tracon-go/tracon/toolcall"
)

// admission has about the size of a real one.
func admission(i int64) audit.Entry {
	return audit.Entry{
		Tenant: fmt.Sprint("tenant-", i%8), Actor: "model", Kind: audit.Admission, Subject: "unit-converter scripts/convert.py",
		Run: "01900000-0000-7000-8000-000000000001",
		Facts: audit.Facts("argumentsBytes", "42", "argumentsCommitment", bundle.Sum(nil).String(), "argumentsMode", "argv",
			"digest", bundle.Sum(nil).String(), "executor", "process", "grant", "01900000-0000-7000-8000-000000000002", "inputs", "0 files, 0 bytes",
			"interpreter", "py", "interpreterDigest", bundle.Sum(nil).String(), "script", bundle.Sum(nil).String(), "tier", "process",
			"limits", "timeout 30s, output 262144, memory 268435456, processes 64"),
	}
}

func bench(b *testing.B) *sqlite.Store {
	s := open(b, filepath.Join(b.TempDir(), "tracon.db"))
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// callers runs op b.N times in n goroutines.
func callers(b *testing.B, n int, op func(i int64) error) {
	var done atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range n {
		wg.Go(func() {
			for n := done.Add(1); n <= int64(b.N); n = done.Add(1) {
				if err := op(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("callers=", n), func(b *testing.B) {
			log := audit.NewLog(bench(b))
			callers(b, n, func(i int64) error {
				_, err := log.Append(context.Background(), admission(i))
				return err
			})
		})
	}
}

func BenchmarkAddCall(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("callers=", n), func(b *testing.B) {
			s := bench(b)
			log := audit.NewLog(s)
			callers(b, n, func(i int64) error {
				r := toolcall.Record{
					ID: fmt.Sprintf("01900000-0000-7000-8000-%012d", i), Tenant: fmt.Sprint("tenant-", i%8), Skill: "unit-converter",
					Script: "scripts/convert.py", Digest: bundle.Sum(nil), ScriptDigest: bundle.Sum(nil), Executor: "process", Tier: "process",
					ArgumentsDigest: bundle.Sum(nil), ArgumentsSalt: make([]byte, 32), Admitted: time.Now(), Ended: time.Now(), Ending: "exited", ExitCode: new(0),
				}
				_, err := log.Commit(context.Background(), audit.Entry{Tenant: r.Tenant, Kind: audit.Ending, Subject: "unit-converter", Run: r.ID},
					func(ctx context.Context, p audit.Pending) error { return s.AddCall(ctx, r, p) })
				return err
			})
		})
	}
}

func benchGrants(b *testing.B) *sqlite.Store {
	s := bench(b)
	log := audit.NewLog(s)
	c, err := bundle.New([]bundle.File{{Path: "scripts/a.py", Data: []byte("print(1)")}}, nil, bundle.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		g := grant.Grant{
			ID: fmt.Sprint("grant-", i), Ref: grant.Ref{Tenant: "tenant", Skill: "skill", Script: fmt.Sprint("scripts/", i%100, ".py")}, Pin: c.Digest(),
			GrantedBy: "operator", Granted: time.Now(), MinTier: grant.Process,
		}
		after := ""
		if i >= 100 {
			after = fmt.Sprint("grant-", i-100)
		}
		_, err := log.Commit(b.Context(), audit.Entry{Tenant: "tenant", Kind: audit.Granted}, func(ctx context.Context, p audit.Pending) error {
			return s.AddGrant(ctx, g, c, after, p)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkGrantLookup looks for the newest of ten grants of a Ref, among 1,000.
func BenchmarkGrantLookup(b *testing.B) {
	s := benchGrants(b)
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint("callers=", n), func(b *testing.B) {
			callers(b, n, func(i int64) error {
				_, err := s.Grant(context.Background(), grant.Ref{Tenant: "tenant", Skill: "skill", Script: fmt.Sprint("scripts/", i%100, ".py")})
				return err
			})
		})
	}
}

// BenchmarkRules reads what the gate "switch" reads for each call.
func BenchmarkRules(b *testing.B) {
	s := bench(b)
	log := audit.NewLog(s)
	_, err := log.Commit(b.Context(), audit.Entry{Tenant: gate.HostTenant, Kind: audit.Host}, func(ctx context.Context, p audit.Pending) error {
		return s.SetHost(ctx, gate.Host{Enabled: true, Interpreters: map[string]gate.Interpreter{"py": {Path: "/usr/bin/python3", Digest: bundle.Sum(nil)}}}, 0, p)
	})
	if err != nil {
		b.Fatal(err)
	}
	_, err = log.Commit(b.Context(), audit.Entry{Tenant: "tenant", Kind: audit.Policy}, func(ctx context.Context, p audit.Pending) error {
		return s.SetPolicy(ctx, "tenant", gate.Policy{Enabled: true, Interpreters: []string{"py"}}, 0, p)
	})
	if err != nil {
		b.Fatal(err)
	}
	callers(b, 1, func(int64) error {
		_, err1 := s.Host(context.Background())
		_, err2 := s.Policy(context.Background(), "tenant")
		if err1 != nil {
			return err1
		}
		return err2
	})
}
