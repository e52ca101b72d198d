package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs every file of testdata/script through the real binary, with
// an empty home, real interpreters and the example skills.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	name := "tracon"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("EXAMPLES", examples)
			env.Setenv("BIN", bin)
			env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run"))
			if err := os.Mkdir(filepath.Join(env.WorkDir, "run"), 0o700); err != nil {
				return err
			}
			return os.CopyFS(filepath.Join(env.WorkDir, "skills"), os.DirFS(filepath.Join(examples, "skills")))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"grab":   grab,
			"append": appendTo,
			"nofile": noFile,
		},
	})
}

// grab NAME REGEXP sets the variable NAME to the first group of REGEXP, or all
// of it, in the standard output of the last command.
func grab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grab NAME REGEXP")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("no match for %q in the standard output", args[1])
	}
	ts.Setenv(args[0], m[len(m)-1])
}

// append FILE TEXT appends TEXT and a line feed to FILE.
func appendTo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: append FILE TEXT")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteString(args[1] + "\n")
	ts.Check(err)
	ts.Check(f.Close())
}

// nofile DIR asserts that no file lies below DIR: that nothing was left behind.
func noFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nofile DIR")
	}
	err := filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			ts.Fatalf("left behind: %s", path)
		}
		return err
	})
	if !os.IsNotExist(err) {
		ts.Check(err)
	}
}
