package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/toolcall"
)

// open opens a house over a folder of skills, with sh on the allow-list of host and tenant.
func open(t *testing.T, files map[string]string) (*daemon.House, string) {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		write(t, filepath.Join(dir, "skills", path), text)
	}
	env := map[string]string{"HOME": dir, "TRACON_RUNTIME": filepath.Join(dir, "run"), "TRACON_SKILLS": filepath.Join(dir, "skills")}
	env["TRACON_EXECUTOR"] = os.Getenv("TRACON_EXECUTOR")
	c, err := config.Load(config.Source{Getenv: func(k string) string { return env[k] }, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	h, err := daemon.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := h.AddRoots(); err != nil {
		t.Fatal(err)
	}
	settings(t, h)
	return h, filepath.Join(dir, "skills")
}

// settings puts sh on the allow-list of host and tenant, and switches both on.
func settings(t *testing.T, h *daemon.House) {
	t.Helper()
	sh, err := h.Probe(t.Context(), "sh", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admin.SetHost(t.Context(), "op", func(s *gate.Host) error {
		s.Enabled, s.Interpreters = true, map[string]gate.Interpreter{"sh": sh}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admin.SetPolicy(t.Context(), "op", "t", func(p *gate.Policy) error {
		p.Enabled, p.Interpreters = true, []string{"sh"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func grantAll(t *testing.T, h *daemon.House) {
	t.Helper()
	ref := grant.Ref{Tenant: "t", Skill: "s", AllScripts: true}
	r, err := h.Admin.Review(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admin.Grant(t.Context(), admin.Granting{Actor: "op", Ref: ref, Digest: r.Content.Digest(), MinTier: grant.Process}); err != nil {
		t.Fatal(err)
	}
}

const front = "---\nname: s\ndescription: Says a word.\n---\n"

// Case 43, B1: while the script and a sibling are swapped in a tight loop, only
// the bytes that were granted ever run, and never one file of each.
func TestOnlyPinnedBytesRun(t *testing.T) {
	h, dir := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": ". ./lib.sh; echo granted $WORD\n", "s/lib.sh": "WORD=granted\n"})
	grantAll(t, h)
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var swaps atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			word := []string{"swapped", "granted"}[i%2]
			for path, text := range map[string]string{"a.sh": ". ./lib.sh; echo " + word + " $WORD\n", "lib.sh": "WORD=" + word + "\n"} {
				tmp := filepath.Join(dir, path+".tmp")
				if os.WriteFile(tmp, []byte(text), 0o600) == nil && os.Rename(tmp, filepath.Join(dir, "s", path)) == nil {
					swaps.Add(1)
				}
			}
		}
	})
	ran, refused := 0, 0
	for range 150 {
		out, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Skill: "s", Script: "a.sh"})
		d, denied := errors.AsType[*gate.Denial](err)
		switch {
		case err == nil && out.Stdout == "granted granted\n":
			ran++
		case denied && d.Gate == gate.PinGate:
			refused++
		case denied && (d.Gate == gate.NameGate || d.Gate == gate.ContentGate):
			// A folder that is listed while a file in it is replaced may show neither
			// the old one nor the new one: nothing runs, which is what matters.
		default:
			t.Errorf("out = %q, err = %v; want the granted bytes or a refusal", out.Stdout, err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if ran == 0 || refused == 0 {
		t.Errorf("%d ran and %d were refused during %d swaps: the race was not hit", ran, refused, swaps.Load())
	}
}

// R16, R25: a run leaves its admission, its ending and its record, also for the
// next process that opens the same data.
func TestRecordStaysWithTheData(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "exit 3\n"})
	grantAll(t, h)
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Actor: "model", Skill: "s", Script: "a.sh"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := daemon.Open(t.Context(), h.Config, slog.New(slog.DiscardHandler)) // as another process would
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close(context.Background())
	rec, err := second.Store.Call(t.Context(), "t", out.ID)
	if err != nil || rec.ExitCode == nil || *rec.ExitCode != 3 || rec.Actor != "model" || rec.Digest != out.Digest {
		t.Errorf("record = %+v, %v", rec, err)
	}
	var kinds []string
	for leaf, err := range second.Log.Entries(t.Context(), "t", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Entry.Run == out.ID {
			kinds = append(kinds, string(leaf.Entry.Kind))
		}
	}
	if fmt.Sprint(kinds) != fmt.Sprint([]audit.Kind{audit.Admission, audit.Ending}) {
		t.Errorf("the log has %v of the run, want its admission and its ending", kinds)
	}
	if _, err := second.Log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// Several runners over one data folder, as several processes are: the log stays
// whole, and every admitted call has one ending.
func TestSeveralProcessesShareTheData(t *testing.T) {
	h, _ := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo hi\n"})
	grantAll(t, h)
	var wg sync.WaitGroup
	for range 3 {
		other, err := daemon.Open(t.Context(), h.Config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := other.AddRoots(); err != nil {
			t.Fatal(err)
		}
		runner, err := other.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer other.Close(context.Background())
			for range 10 {
				if out, err := runner.Run(t.Context(), gate.Call{Tenant: "t", Skill: "s", Script: "a.sh"}); err != nil || out.Stdout != "hi\n" {
					t.Errorf("out = %q, err = %v", out.Stdout, err)
				}
			}
		})
	}
	wg.Wait()
	calls, err := h.Store.Calls(t.Context(), "t", toolcall.Filter{Limit: 1000})
	if err != nil || len(calls) != 30 {
		t.Errorf("%d records, %v; want 30", len(calls), err)
	}
	if _, err := h.Log.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// R11, case 35: an interpreter that was replaced after it was listed does not run.
func TestInterpreterReplaced(t *testing.T) {
	t.Setenv("TRACON_EXECUTOR", "process") // a box sees the interpreters below /usr alone, and those are not ours to replace
	h, dir := open(t, map[string]string{"s/SKILL.md": front, "s/a.sh": "echo hi\n"})
	grantAll(t, h)
	host, err := h.Hosts.Host(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	real, err := os.ReadFile(host.Interpreters["sh"].Path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(filepath.Dir(dir), "sh")
	if err := execfile.Write(copied, bytes.NewReader(real)); err != nil {
		t.Fatal(err)
	}
	in, err := h.Probe(t.Context(), "sh", copied)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Admin.SetHost(t.Context(), "op", func(s *gate.Host) error { s.Interpreters["sh"] = in; return nil }); err != nil {
		t.Fatal(err)
	}
	runner, err := h.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := gate.Call{Tenant: "t", Skill: "s", Script: "a.sh"}
	if out, err := runner.Run(t.Context(), call); err != nil || out.Stdout != "hi\n" {
		t.Fatalf("out = %q, err = %v", out.Stdout, err)
	}
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	if err := execfile.Write(copied, bytes.NewReader(append(real, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Run(t.Context(), call); err == nil || !strings.Contains(err.Error(), "probe") {
		t.Errorf("err = %v, want the executor to refuse a file that was not probed", err)
	}
}
