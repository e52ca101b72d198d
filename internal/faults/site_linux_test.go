package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/internal/pgserver"
)

func full() bool { return os.Getenv("TRACON_FAULTS") == "full" }

// need looks for a program. Where it is missing the test is skipped, which is a
// failure where everything is required to be there.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("TRACON_REQUIRE") == "all" {
		t.Fatalf("this test needs %s: %v", program, err)
	}
	t.Skipf("this test needs %s: %v", program, err)
	return ""
}

var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary returns the real binary, which is built once.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "faults"); built.err != nil {
			return
		}
		c := exec.Command("go", "build", "-o", built.dir, "../../cmd/tracon")
		c.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released, and as ./check has compiled it by now
		out, err := c.CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "tracon")
}

func TestMain(m *testing.M) {
	if proofs := os.Getenv(hostVariable); proofs != "" {
		fmt.Fprintln(os.Stderr, host(proofs))
		os.Exit(1)
	}
	if os.Getenv(poisonVariable) != "" {
		if err := poisoned(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0) // as it is: nothing is closed, nothing is written once more
	}
	if what := os.Getenv(ownVariable); what != "" {
		if err := own(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgserver.Main(m, func() error {
		if built.dir == "" {
			return nil
		}
		return os.RemoveAll(built.dir)
	}))
}

// A site is one installation in a folder of its own, with skills beside it.
type site struct {
	dir      string
	bin      string
	database string // the address of a PostgreSQL database; empty for SQLite
	second   string // folder of checkpoints; empty: none
}

// skills that a site has. The script leaves the proof that it ran.
var skills = map[string]string{
	"x/SKILL.md": "---\nname: x\ndescription: Leaves a proof.\n---\n",
	"x/a.sh":     "echo ran >>\"$1\"\n",
	"y/SKILL.md": "---\nname: y\ndescription: To be granted.\n---\n",
	"y/a.sh":     "echo y\n",
	"z/SKILL.md": "---\nname: z\ndescription: To be imported.\n---\n",
	"z/a.sh":     "echo z\n",
}

func newSite(t *testing.T) site {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // strace compares paths as the kernel tells them
	if err != nil {
		t.Fatal(err)
	}
	s := site{dir: dir, bin: binary(t)}
	for name, text := range skills {
		path := filepath.Join(dir, "skills", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// copy returns a site of its own with everything that s has.
func (s site) copy(t *testing.T) site {
	t.Helper()
	to := newSite(t)
	home := os.DirFS(filepath.Join(s.dir, "home"))
	err := fs.WalkDir(home, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		in, err := d.Info()
		if err != nil {
			return err
		}
		name := filepath.Join(to.dir, "home", path)
		if d.IsDir() {
			return os.Mkdir(name, in.Mode().Perm())
		}
		data, err := fs.ReadFile(home, path)
		if err != nil {
			return err
		}
		return os.WriteFile(name, data, in.Mode().Perm()) // a key is its owner's alone
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func (s site) proof() string { return filepath.Join(s.dir, "proof") }
func (s site) data() string  { return filepath.Join(s.dir, "home", ".local", "share", "tracon") }

func (s site) env() map[string]string {
	env := map[string]string{"HOME": filepath.Join(s.dir, "home"), "PATH": os.Getenv("PATH"), "TRACON_EXECUTOR": "process",
		"TRACON_RUNTIME": filepath.Join(s.dir, "run")}
	if s.database != "" {
		env["TRACON_STORE"], env["TRACON_DATABASE_URL"] = config.Postgres, s.database
	}
	if s.second != "" {
		env["TRACON_CHECKPOINTS"] = s.second
	}
	return env
}

// command is the binary, under the program and words before it.
func (s site) command(ctx context.Context, before []string, args ...string) *exec.Cmd {
	words := append(append([]string{}, before...), append([]string{s.bin}, args...)...)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir = filepath.Join(s.dir, "skills")
	for name, value := range s.env() {
		c.Env = append(c.Env, name+"="+value)
	}
	c.WaitDelay = time.Minute
	return c
}

// must runs the binary, which must succeed, and returns what it printed.
func (s site) must(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	c := s.command(t.Context(), nil, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tracon %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// open opens the house of s.
func (s site) open(t *testing.T) (*daemon.House, error) {
	t.Helper()
	c, err := config.Load(config.Source{Getenv: func(k string) string { return s.env()[k] }, Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	return daemon.Open(context.Background(), c, slog.New(slog.DiscardHandler))
}

// proofs returns how often the script left its proof: how often it ran (I4).
func (s site) proofs(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(s.proof())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "ran\n")
}

// leaves returns the hashes of the log, and how many admissions it has.
func leaves(h *daemon.House) (hashes []audit.Hash, admissions int, err error) {
	for leaf, err := range h.Log.Entries(context.Background(), "", 0) {
		if err != nil {
			return nil, 0, err
		}
		hashes = append(hashes, leaf.Hash)
		if leaf.Entry.Kind == audit.Admission {
			admissions++
		}
	}
	return hashes, admissions, nil
}

// recovered opens the house as the next process does, which closes what a dead one
// left, and returns what fsck finds then. The caller closes it.
func (s site) recovered(t *testing.T) (*daemon.House, []fsck.Finding, error) {
	t.Helper()
	h, err := s.started(t)
	if err != nil {
		return h, nil, err
	}
	found, err := examined(h)
	return h, found, err
}

// started opens the house and starts it. The caller closes it, unless it is nil.
func (s site) started(t *testing.T) (*daemon.House, error) {
	t.Helper()
	h, err := s.open(t)
	if err != nil {
		return nil, err
	}
	if _, err := h.Start(context.Background()); err != nil {
		return h, fmt.Errorf("starting: %w", err)
	}
	return h, nil
}

func examined(h *daemon.House) (found []fsck.Finding, err error) {
	_, err = h.Fsck(context.Background(), nil, func(f fsck.Finding) { found = append(found, f) })
	return found, err
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
