package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/store/sqlite"
)

// readThree reads the store at path, whose log has three entries, and says what is
// amiss: with how it is read, and with what is left.
func readThree(path string) error {
	ctx := context.Background()
	s, err := sqlite.OpenToRead(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	log := audit.NewLog(s)
	tree, err := log.Verify(ctx, nil)
	if err != nil || tree.Size != 3 {
		err = errors.Join(err, fmt.Errorf("the log has %d entries, want 3", tree.Size))
	}
	wal, statErr := os.Stat(path + "-wal")
	if want := statErr == nil && wal.Size() > 0; s.Copied() != want {
		err = errors.Join(err, fmt.Errorf("Copied says %v, want %v", s.Copied(), want))
	}
	if _, werr := log.Append(ctx, audit.Entry{Tenant: "acme", Kind: audit.Refusal}); werr == nil {
		err = errors.Join(err, errors.New("an entry was written"))
	}
	err = errors.Join(err, s.Close())
	left, globErr := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left behind: %q", left))
	}
	return errors.Join(err, globErr)
}

// readMounted is readThree where the folder is mounted to be read alone.
func readMounted(path string) error {
	folder := filepath.Dir(path)
	err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount(folder, folder, "", syscall.MS_BIND, ""),
		syscall.Mount("", folder, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_NOSUID|syscall.MS_NODEV, ""))
	if err != nil {
		return fmt.Errorf("%s: %w", noMount, err)
	}
	return readThree(path)
}

// copied makes a folder with a copy of a store of three entries, with or without its
// write-ahead log, and returns the path there.
func copied(t *testing.T, ahead bool) string {
	t.Helper()
	from, to := filepath.Join(t.TempDir(), "tracon.db"), filepath.Join(t.TempDir(), "tracon.db")
	s := open(t, from)
	log := audit.NewLog(s)
	for i := range 3 {
		appendTo(t, log, fmt.Sprint("entry ", i))
	}
	ends := []string{""}
	if ahead { // as a snapshot of the disk finds it
		ends = append(ends, "-wal")
		defer s.Close()
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		data, err := os.ReadFile(from + end)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			t.Fatalf("%s is empty", from+end)
		}
		if err := os.WriteFile(to+end, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestReadCopy: B7, a copy that this user may not write is read where it lies, with
// what stands in its write-ahead log, and stays byte by byte what it is.
func TestReadCopy(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ahead   bool
		mounted bool
	}{
		{"without the right to write", false, false},
		{"without the right to write, with a write-ahead log", true, false},
		{"on a file system that is read alone", false, true},
		{"on a file system that is read alone, with a write-ahead log", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := copied(t, tt.ahead)
			folder, tmp := filepath.Dir(path), t.TempDir()
			before := pictures(t, folder)
			what := "read"
			if tt.mounted {
				what = "mounted"
			}
			c := child(t, what, path)
			c.Env = append(c.Env, "TMPDIR="+tmp)
			c.SysProcAttr = &syscall.SysProcAttr{}
			switch {
			case tt.mounted:
				c.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
				if os.Geteuid() != 0 {
					c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
					c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
					c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
				}
			default:
				for f, mode := range map[string]os.FileMode{filepath.Dir(folder): 0o755, folder: 0o555, filepath.Dir(tmp): 0o755, tmp: 0o777} {
					if err := os.Chmod(f, mode); err != nil {
						t.Fatal(err)
					}
				}
				t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
				if os.Geteuid() == 0 { // whom no mode keeps out
					c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
				}
			}
			var text string
			if out, err := c.CombinedOutput(); err != nil {
				text = fmt.Sprint(err, ": ", string(out))
				_, exited := errors.AsType[*exec.ExitError](err)
				if tt.mounted && (errors.Is(err, syscall.EPERM) || strings.Contains(text, noMount)) {
					lacking(t, "the right to mount", text)
				}
				if !exited {
					t.Fatal(err)
				}
			}
			if text != "" {
				t.Error(text)
			}
			if d := cmp.Diff(before, pictures(t, folder)); d != "" {
				t.Errorf("the copy was changed (-before +after):\n%s", d)
			}
		})
	}
}
