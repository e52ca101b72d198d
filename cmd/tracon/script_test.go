package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tracon-go/tracon/internal/pgserver"
	"github.com/tracon-go/tracon/internal/rootfs"
	"github.com/tracon-go/tracon/internal/runnercase"
)

// asMain has this test binary be tracon: a server that the race detector watches.
const asMain = "TRACON_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	runnercase.Main(func() int {
		code := pgserver.Main(m)
		if err := os.RemoveAll(program.dir); err != nil { // an empty name is no error: nothing was built
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
		return code
	}, map[string]func([]string) error{"nats": serveNATS})
}

// TestScripts runs every file of testdata/script through the real binary, with
// an empty home, real interpreters and the example skills.
func TestScripts(t *testing.T) {
	scripts(t, testscript.Params{Dir: "testdata/script", Condition: kept("sqlite")}, func(*testscript.Env) error { return nil })
}

// TestScriptsOnPostgres: B9, every verb says the same where the store is
// PostgreSQL, each script on a database of its own.
func TestScriptsOnPostgres(t *testing.T) {
	server := pgserver.Shared(t)
	var files []string
	for _, name := range onPostgres {
		files = append(files, "testdata/script/"+name+".txtar")
	}
	files = append(files, "testdata/postgres.txtar")
	scripts(t, testscript.Params{Files: files, Condition: kept("postgres")}, func(env *testscript.Env) error {
		address, err := server.Schema()
		env.Setenv("TRACON_STORE", "postgres")
		env.Setenv("TRACON_DATABASE_URL", address)
		return err
	})
}

// kept makes the conditions by which a script asks where everything is kept.
func kept(store string) func(string) (bool, error) {
	return func(cond string) (bool, error) {
		if cond != "sqlite" && cond != "postgres" {
			return false, fmt.Errorf("there is no condition %q", cond)
		}
		return cond == store, nil
	}
}

// onPostgres are the scripts that between them call each verb that reads or
// changes the store, and the README's first command.
var onPostgres = []string{"first", "grant", "skill", "explain", "killed", "files", "retention", "entries", "exit_codes"}

// program is the real binary, which is built once: to link it takes seconds.
var program struct {
	once sync.Once
	dir  string
	err  error
}

// build returns the folder that the real binary is in.
func build(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "built"); program.err != nil {
			return
		}
		name := "tracon"
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		c := exec.Command("go", "build", "-o", filepath.Join(program.dir, name), ".")
		c.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released, and as ./check has compiled it by now
		if out, err := c.CombinedOutput(); err != nil {
			program.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.dir
}

func scripts(t *testing.T, p testscript.Params, more func(*testscript.Env) error) {
	bin := build(t)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	p.RequireExplicitExec, p.RequireUniqueNames = true, true
	p.Setup = func(env *testscript.Env) error {
		env.Values[theTest{}] = env.T()
		home := filepath.Join(env.WorkDir, "home")
		env.Setenv("HOME", home)
		env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		env.Setenv("EXAMPLES", examples)
		env.Setenv("BIN", bin)
		env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run"))
		if err := os.Mkdir(filepath.Join(env.WorkDir, "run"), 0o700); err != nil {
			return err
		}
		if err := more(env); err != nil {
			return err
		}
		return os.CopyFS(filepath.Join(env.WorkDir, "skills"), os.DirFS(filepath.Join(examples, "skills")))
	}
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"grab":   grab,
		"append": appendTo,
		"nofile": noFile,
		"rootfs": rootFS,
	}
	maps.Copy(p.Cmds, serverCommands)
	maps.Copy(p.Cmds, registryCommands)
	testscript.Run(t, p)
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

// rootfs DIR PATTERN... makes a root file system of this machine's programs; the
// pattern "python" stands for Python with its library.
func rootFS(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: rootfs DIR PATTERN...")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.Mkdir(dir, 0o755))
	var patterns []string
	for _, p := range args[1:] {
		if p == "python" {
			patterns = append(patterns, rootfs.Python...)
			continue
		}
		patterns = append(patterns, p)
	}
	ts.Check(rootfs.Make(dir, patterns...))
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
