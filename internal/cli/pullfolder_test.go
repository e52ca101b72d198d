package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Case 40: a pull removes what a killed one left, and nothing of one that lives; where
// there is no place of the user's own, it takes its folder away itself.
func TestPullFolder(t *testing.T) {
	cache := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, cache)
	}
	lives, removeFirst, err := pullFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := lives.WriteFile("part", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := filepath.Dir(lives.Name())
	killed := filepath.Join(in, "KILLED")
	if err := errors.Join(os.Mkdir(killed, 0o700), os.WriteFile(filepath.Join(killed, "part"), nil, 0o600), os.WriteFile(killed+lockEnd, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, removeSecond, err := pullFolder()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(in); err != nil || len(left) != 4 { // two folders, with their locks
		t.Errorf("there is %v, %v; want the two that live", left, err)
	}
	if _, err := lives.Stat("part"); err != nil {
		t.Errorf("of the one that lives: %v", err)
	}
	if err := errors.Join(removeFirst(), removeSecond()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(in); err != nil || len(left) > 0 {
		t.Errorf("there is still %v, %v", left, err)
	}
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, "")
	}
	for _, name := range []string{"TMPDIR", "TMP"} {
		t.Setenv(name, cache)
	}
	homeless, remove, err := pullFolder()
	if err != nil {
		t.Fatal(err)
	}
	at := homeless.Name()
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(at); !errors.Is(err, os.ErrNotExist) || filepath.Dir(at) != cache {
		t.Errorf("%s: %v, want it gone from %s", at, err, cache)
	}
}
