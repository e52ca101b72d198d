package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/sqlite"
)

// childVariable has the test binary do one thing in a process of its own, with
// another user, another file system or another limit.
const childVariable = "TRACON_SQLITE_CHILD"

var children = map[string]func(path string) error{
	"open": func(path string) error {
		s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
		if err != nil {
			return err
		}
		return s.Close()
	},
	"append":  appendMany,
	"full":    fullDisk,
	"limit":   fileLimit,
	"read":    readThree,
	"mounted": readMounted,
}

func TestMain(m *testing.M) {
	if what := os.Getenv(childVariable); what != "" {
		if err := children[what](os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// child prepares a process that does what at path. It is started through a link
// of the kernel, because another user cannot reach the folder of the binary.
func child(t *testing.T, what, path string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$", path)
	c.Env = append(os.Environ(), childVariable+"="+what)
	return c
}

// say runs c and returns what it printed as its error, "" for success.
func say(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	if err != nil && stderr.Len() == 0 {
		t.Fatal(err)
	}
	return stderr.String()
}

// TestReadOnly: a folder or a file that may not be written is refused by its
// name, with the remedy, and nothing in it changes.
func TestReadOnly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		file   bool // there is one
		folder os.FileMode
		mode   os.FileMode
	}{
		{"a new file in a folder that may not be written", false, 0o555, 0},
		{"a file that may be read, in a folder that may not be written", true, 0o555, 0o444},
		{"a file that may be written, in a folder that may not", true, 0o555, 0o666},
		{"a file that may be read, in a folder that may be written", true, 0o777, 0o444},
		{"a file that may not be read", true, 0o777, 0o000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "tracon.db")
			if tt.file {
				fill(t, path, 3)
				if err := os.Chmod(path, tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range []string{filepath.Dir(folder), folder} {
				if err := os.Chmod(f, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(folder, tt.folder); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
			c := child(t, "open", path)
			if os.Geteuid() == 0 { // whom no mode keeps out
				c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			before := names(t, folder)
			text := say(t, c)
			for _, word := range []string{"cannot be written", folder, "right to write", path} {
				if !strings.Contains(text, word) {
					t.Errorf("Open says %q, and not %q", text, word)
				}
			}
			if d := cmp.Diff(before, names(t, folder)); d != "" {
				t.Errorf("the folder was changed (-before +after):\n%s", d)
			}
			if tt.file { // the owner's entries are all there
				if err := errors.Join(os.Chmod(folder, 0o700), os.Chmod(path, 0o600)); err != nil {
					t.Fatal(err)
				}
				s := open(t, path)
				defer s.Close()
				if n := verified(t, audit.NewLog(s)); n != 3 {
					t.Errorf("the log has %d entries, want 3", n)
				}
			}
		})
	}
}

func names(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		in, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprint(e.Name(), " ", in.Size()))
	}
	return names
}

// TestProcesses: B9, several processes that open one new file at once write one
// log without a gap.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	var wg sync.WaitGroup
	for range 4 {
		c := child(t, "append", path)
		wg.Go(func() {
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	s := open(t, path)
	defer s.Close()
	if n := verified(t, audit.NewLog(s)); n != 4*4*25 {
		t.Errorf("the log has %d entries, want %d", n, 4*4*25)
	}
}

func appendMany(path string) error {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return err
	}
	log := audit.NewLog(s)
	errs := make(chan error, 4)
	for c := range cap(errs) {
		go func() {
			var err error
			for range 25 {
				_, e := log.Append(context.Background(), audit.Entry{Tenant: fmt.Sprint("tenant-", c%3), Kind: audit.Refusal})
				err = errors.Join(err, e)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, s.Close())
}

// TestFullDisk: case 57. The disk fills up: what was acknowledged is there, and
// from the first failure on nothing is written until the store is opened again.
func TestFullDisk(t *testing.T) {
	c := child(t, "full", t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	switch err := c.Run(); {
	case errors.Is(err, syscall.EPERM) || strings.Contains(stderr.String(), noMount):
		lacking(t, "the right to mount a small file system", fmt.Sprint(err, stderr.String()))
	case err != nil:
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// lacking skips a test for want of something, which is a failure where
// everything is required to be there.
func lacking(t *testing.T, what, why string) {
	t.Helper()
	if os.Getenv("TRACON_REQUIRE") == "all" {
		t.Fatalf("this test needs %s: %s", what, why)
	}
	t.Skipf("this test needs %s: %s", what, why)
}

const noMount = "no right to mount"

func fullDisk(folder string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%s: %w", noMount, err)
	}
	mount := func(flags uintptr, size string) error {
		return syscall.Mount("tmpfs", folder, "tmpfs", flags, "size="+size)
	}
	if err := mount(0, "1m"); err != nil {
		return fmt.Errorf("%s: %w", noMount, err)
	}
	path := filepath.Join(folder, "tracon.db")

	// There is no room for a new one.
	ballast := filepath.Join(folder, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	_, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if !errors.Is(err, store.ErrUnusable) || !strings.Contains(err.Error(), "full") || !strings.Contains(err.Error(), folder) {
		return fmt.Errorf("opening on a full disk says: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	return stops(path, "full", func() error { return mount(syscall.MS_REMOUNT, "64m") })
}

// TestIOError: a write that fails stops the store in the same way. The limit on
// the size of a file stands for a disk that fails.
func TestIOError(t *testing.T) {
	if text := say(t, child(t, "limit", t.TempDir())); text != "" {
		t.Error(text)
	}
}

func fileLimit(folder string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		return err
	}
	set := func(n uint64) error {
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: was.Max})
	}
	if err := set(1 << 20); err != nil { // more than the migrations write
		return err
	}
	return stops(filepath.Join(folder, "tracon.db"), "disk of "+folder+" failed", func() error { return set(was.Cur) })
}

// stops appends to the store at path until it fails, with an error that says
// word, and proves that it then takes no change, not even after mend, until it
// is opened again.
func stops(path, word string, mend func() error) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	log := audit.NewLog(s)
	if err := s.Ready(ctx); err != nil {
		return fmt.Errorf("before the failure Ready says: %w", err)
	}
	entry := audit.Entry{Tenant: "acme", Kind: audit.Refusal, Subject: strings.Repeat("x", 4000)}
	var mu sync.Mutex
	var acked uint64
	var first error
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10000 {
				_, err := log.Append(ctx, entry)
				mu.Lock()
				if err == nil {
					acked++
				} else if first == nil {
					first = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if !errors.Is(first, store.ErrPoisoned) || !errors.Is(first, audit.ErrUnavailable) || !strings.Contains(first.Error(), word) || acked == 0 {
		return fmt.Errorf("after %d appends one says: %w", acked, first)
	}
	if err := s.Ready(ctx); !errors.Is(err, store.ErrPoisoned) || !strings.Contains(err.Error(), word) {
		return fmt.Errorf("after the failure Ready says: %w", err)
	}
	if err := mend(); err != nil {
		return err
	}
	if err := log.Ready(ctx); !errors.Is(err, store.ErrPoisoned) || !errors.Is(err, audit.ErrUnavailable) {
		return fmt.Errorf("when the disk is mended, and nobody has started again, Ready says: %w", err)
	}
	_, err = log.Append(ctx, entry)
	if err == nil || err.Error() != first.Error() {
		return fmt.Errorf("the next append says %w, want the first error: %w", err, first)
	}
	_, err = log.Commit(ctx, audit.Entry{Tenant: "acme", Kind: audit.Policy}, func(ctx context.Context, p audit.Pending) error {
		return s.SetPolicy(ctx, "acme", gate.Policy{Enabled: true}, 0, p)
	})
	if !errors.Is(err, store.ErrPoisoned) {
		return fmt.Errorf("the next change says: %w", err)
	}
	if _, err := s.Grant(ctx, grant.Ref{Tenant: "acme", Skill: "skill", AllScripts: true}); !errors.Is(err, grant.ErrNotFound) {
		return fmt.Errorf("a read after the failure says: %w", err)
	}
	if tree, err := log.Verify(ctx, nil); err != nil || tree.Size != acked {
		return fmt.Errorf("%d appends were acknowledged, the log has %d: %w", acked, tree.Size, err)
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if s, err = sqlite.Open(ctx, path, sqlite.Options{}); err != nil {
		return fmt.Errorf("opening again: %w", err)
	}
	log = audit.NewLog(s)
	if _, err := log.Append(ctx, entry); err != nil {
		return fmt.Errorf("an append after opening again: %w", err)
	}
	if tree, err := log.Verify(ctx, nil); err != nil || tree.Size != acked+1 {
		return fmt.Errorf("after opening again the log has %d entries, want %d: %w", tree.Size, acked+1, err)
	}
	return s.Close()
}
