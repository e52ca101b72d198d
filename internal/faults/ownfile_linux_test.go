package faults_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracon-go/tracon/internal/ownfile"
)

// ownVariable has the test binary do one thing with a file of its own; its value is
// what. The file is the last argument. A second word is how large a file may become.
const ownVariable = "TRACON_FAULTS_OWNFILE"

const oldText, newText = "what was there before", "what is there now, and longer"

var ownDeeds = map[string]struct {
	do func(path string) error
	// left says whether the file may be like that after something failed, and done
	// whether it must be after nothing did. A file that is not there is nil.
	left, done func(text *string) bool
}{
	"write": {
		func(path string) error { return ownfile.Write(path, []byte(newText)) },
		func(text *string) bool { return text != nil && (*text == oldText || *text == newText) },
		func(text *string) bool { return text != nil && *text == newText },
	},
	"append": {
		func(path string) error { return ownfile.Append(path, []byte(newText)) },
		func(text *string) bool {
			return text != nil && strings.HasPrefix(*text, oldText) && strings.HasPrefix(oldText+newText, *text)
		},
		func(text *string) bool { return text != nil && *text == oldText+newText },
	},
	"remove": {
		ownfile.Remove,
		func(text *string) bool { return text == nil || *text == oldText },
		func(text *string) bool { return text == nil },
	},
}

func own(what string) error {
	deed, limit, _ := strings.Cut(what, " ")
	if limit != "" {
		var n uint64
		if _, err := fmt.Sscan(limit, &n); err != nil {
			return err
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	return ownDeeds[deed].do(os.Args[len(os.Args)-1])
}

// TestOwnFiles: fail closed. Each call that writes a file of our own fails, or is the
// moment of a kill, or writes a part and no more: what fails is told, and who reads
// the file then finds what was there before or what is there now, and no mixture.
func TestOwnFiles(t *testing.T) {
	strace := need(t, "strace")
	dir, err := filepath.EvalSymlinks(t.TempDir()) // strace compares paths as the kernel tells them
	if err != nil {
		t.Fatal(err)
	}
	path, trace := filepath.Join(dir, "own", "f"), filepath.Join(dir, "trace")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	explored, fired := 0, map[string]int{}
	// try does the deed under the words before it, and reports whether its fault came.
	try := func(what, name string, before ...string) (came bool) {
		t.Helper()
		deed := ownDeeds[strings.Fields(what)[0]]
		if err := errors.Join(os.RemoveAll(path+".tmp"), os.WriteFile(path, []byte(oldText), 0o600)); err != nil {
			t.Fatal(err)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		words := append(before, exe, "-test.run=^$", path)
		c := exec.CommandContext(t.Context(), words[0], words[1:]...)
		c.Env = append(os.Environ(), ownVariable+"="+what)
		out, err := c.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		} else if ok && exit.Sys().(syscall.WaitStatus).Signaled() {
			came = true
		}
		if before != nil {
			text, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			came = came || strings.Contains(string(text), "(INJECTED)")
		}
		explored++
		told := err != nil
		var text *string
		if b, err := os.ReadFile(path); err == nil {
			text = new(string(b))
		}
		switch {
		case came && !told && !strings.Contains(name, "unlinkat"): // what was to go, and is not there, is gone
			t.Errorf("%s, %s: it failed, and nothing is told", what, name)
		case told && !deed.left(text), !told && !deed.done(text):
			t.Errorf("%s, %s (%v %s): the file is %q", what, name, err, out, deref(text))
		}
		if err := deed.do(path); err != nil { // what was left is in nobody's way
			t.Errorf("%s, %s: the next time says %v", what, name, err)
		}
		return came
	}
	for what := range ownDeeds {
		if try(what, "no fault"); t.Failed() {
			t.FailNow()
		}
		for _, call := range []string{"openat", "write", "fsync", "close", "renameat", "unlinkat"} {
			for _, m := range modes {
				if !full() && m.name == "ENOSPC" && call != "write" {
					continue
				}
				for n := 1; ; n++ {
					words := []string{strace, "-f", "-qq", "-o", trace, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, m.inject, n)}
					for _, p := range []string{filepath.Dir(path), path, path + ".tmp"} {
						words = append(words, "-P", p)
					}
					if !try(what, fmt.Sprint(m.name, " of ", call, " number ", n), words...) {
						break
					}
					fired[what+" "+call]++
				}
			}
		}
	}
	for limit := 0; limit < len(oldText+newText); limit += 7 {
		for _, what := range []string{"write", "append"} {
			try(fmt.Sprint(what, " ", limit), "a part is written")
		}
	}
	for _, must := range []string{"write openat", "write write", "write fsync", "write close", "write renameat", "write unlinkat",
		"append openat", "append write", "append fsync", "remove unlinkat", "remove fsync"} {
		if fired[must] == 0 {
			t.Errorf("no fault of %s came", must)
		}
	}
	t.Logf("%d tries, faults fired: %v", explored, fired)
}

func deref(s *string) string {
	if s == nil {
		return "not there"
	}
	return *s
}
