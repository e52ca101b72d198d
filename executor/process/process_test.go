//go:build linux

package process_test

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
	"testing"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/execfile"
	"github.com/tracon-go/tracon/internal/hostcase"
	"go.uber.org/goleak"
)

// script returns the order of a script that is alone in its skill.
func script(ext, text string) executortest.Order {
	return executortest.Order{
		Files: []bundle.File{{Path: "main." + ext, Data: []byte(text)}}, Script: "main." + ext, Mode: gate.Argv,
		Policy: gate.Policy{Timeout: 2 * time.Minute},
	}
}

func admit(t testing.TB, w *executortest.World, o executortest.Order) executor.Request {
	t.Helper()
	req, err := w.Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func run(t testing.TB, e *process.Executor, w *executortest.World, o executortest.Order) executor.Result {
	t.Helper()
	res, err := e.Execute(t.Context(), admit(t, w, o))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// both runs f with and without a cgroup.
func both(t *testing.T, f func(t *testing.T, c process.Config)) {
	t.Run("with a cgroup", func(t *testing.T) { f(t, process.Config{}) })
	t.Run("without a cgroup", func(t *testing.T) { f(t, process.Config{NoCgroup: true}) })
}

// Case 35, R11: what the allow-list says is what is started, or nothing is.
func TestInterpreterThatCannotBeStarted(t *testing.T) {
	e, runtime := open(t, process.Config{})
	good := hostcase.Interpreters(t)["sh"]
	changed := filepath.Join(t.TempDir(), "bash")
	text, err := os.ReadFile(good.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := execfile.Write(changed, bytes.NewReader(append(text, '\n'))); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		in   gate.Interpreter
		want error
	}{
		{"a runtime's name", gate.Interpreter{Name: "bash-5"}, executor.ErrUnavailable},
		{"a file in a runtime, though the host has such a file", gate.Interpreter{Name: "bash-5", Path: good.Path, Digest: good.Digest, Image: good.Digest}, executor.ErrUnavailable},
		{"a file that was changed", gate.Interpreter{Path: changed, Digest: good.Digest}, interpreter.ErrChanged},
		{"a file that is gone", gate.Interpreter{Path: "/nowhere/bash", Digest: good.Digest}, interpreter.ErrNotAvailable},
		{"no digest", gate.Interpreter{Path: good.Path}, executor.ErrUnavailable},
		{"a file that is no program", gate.Interpreter{Path: "/etc/passwd", Digest: sum(t, "/etc/passwd")}, executor.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := executortest.NewWorld(map[string]gate.Interpreter{"sh": tc.in})
			res, err := e.Execute(t.Context(), admit(t, w, script("sh", "echo ran\n")))
			if !errors.Is(err, tc.want) || !errors.Is(err, executor.ErrUnavailable) {
				t.Errorf("got %v, %v, want error %v", res.Ending, err, tc.want)
			}
			if left := leftovers(runtime); len(left) > 0 {
				t.Errorf("case 40: left %q", left)
			}
		})
	}
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sum(t *testing.T, path string) bundle.Digest {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Sum(b)
}

// Case 34: 1,000 runs of freshly written scripts, 8 at a time, each starting a
// freshly written sibling directly: no "text file busy", not once.
func TestCase34ThousandRuns(t *testing.T) {
	t.Parallel()
	e, runtime := open(t, process.Config{Runtime: inMemory(t)})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	turn := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range 1000 {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			o := script("sh", "exec ./tool\n")
			o.Files = append(o.Files, bundle.File{Path: "tool", Data: fmt.Appendf(nil, "#!/bin/sh\necho %d\n", i)})
			res := run(t, e, w, o)
			if res.Ending != executor.Exited(0) || string(res.Stdout) != fmt.Sprintln(i) || len(res.Stderr) > 0 {
				t.Errorf("run %d: %v, output %q, standard error %q", i, res.Ending, res.Stdout, res.Stderr)
			}
		})
	}
	wg.Wait()
	if left := leftovers(runtime); len(left) > 0 {
		t.Errorf("B3: left %q", left)
	}
}

// What a script sees of its start: three open files, no core files, folders that
// are private, and a session of its own.
func TestWhatAScriptSees(t *testing.T) {
	both(t, func(t *testing.T, c process.Config) {
		e, _ := open(t, c)
		w := executortest.NewWorld(hostcase.Interpreters(t))
		// The limit comes from outside, a moment after the start: on a busy host the script is there first.
		const text = `import os, resource, signal, stat, sys, time
for _ in range(60000):
    if resource.getrlimit(resource.RLIMIT_CORE) == (1, 1): break
    time.sleep(0.001)
print('files', sorted(n for n in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + n)))
print('core', resource.getrlimit(resource.RLIMIT_CORE))
print('session', os.getsid(0) == os.getpid() == os.getpgid(0))
print('folder', os.path.basename(os.getcwd()))
for d in ('.', '..', '../..', '../../..', os.environ['HOME'], os.environ['TMPDIR']):
    print('mode %o' % stat.S_IMODE(os.stat(d).st_mode))
print('masked', signal.pthread_sigmask(signal.SIG_BLOCK, []))
try:
    os.write(0, b'x')
except OSError as e:
    print('stdin', e.strerror)
print('input', sys.stdin.read())
`
		o := script("py", text)
		o.Mode, o.Arguments = gate.Stdin, map[string]int{"a": 1}
		res := run(t, e, w, o)
		want := "files ['0', '1', '2']\ncore (1, 1)\nsession True\nfolder skill\n" + strings.Repeat("mode 700\n", 6) +
			"masked set()\nstdin Operation not permitted\ninput {\"a\":1}\n"
		if string(res.Stdout) != want {
			t.Errorf("got %s%s, want %s", res.Stdout, res.Stderr, want)
		}
	})
}

// Case 18: a note says how many processes were stopped; none says so where none was.
func TestNoteOfStoppedProcesses(t *testing.T) {
	both(t, func(t *testing.T, c process.Config) {
		e, _ := open(t, c)
		w := executortest.NewWorld(hostcase.Interpreters(t))
		for _, tc := range []struct{ text, want string }{
			{"true\n", ""},
			{"sleep 60 &\n", "1 process was still running"},
			{"sleep 60 & sleep 60 & sleep 60 &\n", "3 processes were still running"},
		} {
			if got := strings.Join(run(t, e, w, script("sh", tc.text)).Notes, "\n"); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q: got note %q, want %q", tc.text, got, tc.want)
			}
		}
	})
}

// Runs of every ending leak no goroutine, no descriptor, no process and no file.
func TestNothingLeaks(t *testing.T) {
	both(t, func(t *testing.T, c process.Config) {
		e, runtime := open(t, c)
		w := executortest.NewWorld(hostcase.Interpreters(t))
		everything := func() {
			for _, text := range []string{"echo hi\n", "exit 3\n", "kill -9 $$\n", "sleep 60 & echo hi\n", "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n"} {
				o := script("sh", text)
				o.Policy.MaxOutput = 1024
				run(t, e, w, o)
			}
			o := script("sh", "sleep 60\n")
			o.Policy.Timeout = 50 * time.Millisecond
			run(t, e, w, o)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := e.Execute(ctx, admit(t, w, script("sh", "sleep 60\n"))); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v", err)
			}
			bad := executortest.NewWorld(map[string]gate.Interpreter{"sh": {Path: "/etc/passwd", Digest: sum(t, "/etc/passwd")}})
			if _, err := e.Execute(t.Context(), admit(t, bad, script("sh", "true\n"))); err == nil {
				t.Error("got no error")
			}
		}
		everything() // whatever is made once is made now
		before, goroutines := descriptors(t), goleak.IgnoreCurrent()
		for range 5 {
			everything()
		}
		if after := descriptors(t); len(after) > len(before) {
			t.Errorf("descriptors: %d before and %d after: %q", len(before), len(after), after)
		}
		if left := leftovers(runtime); len(left) > 0 {
			t.Errorf("left %q", left)
		}
		checkGoroutines(t, goroutines)
	})
}

func descriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			open = append(open, to)
		}
	}
	return open
}

// Close ends the runs that are under way, refuses later ones, and leaves nothing.
func TestClose(t *testing.T) {
	runtime := filepath.Join(t.TempDir(), "run")
	e, err := process.New(process.Config{Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	was := hostcase.Instances(runtime)
	w := executortest.NewWorld(hostcase.Interpreters(t))
	o := script("sh", "echo ready\nsleep 60\n")
	o.Live = gate.NewLive(0)
	defer o.Live.Close()
	req := admit(t, w, o)
	errs := make(chan error, 1)
	go func() {
		_, err := e.Execute(t.Context(), req)
		errs <- err
	}()
	<-o.Live.Chunks()
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if err := <-errs; err == nil || errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got error %v, want one of a run that was stopped", err)
	}
	if _, err := e.Execute(t.Context(), req); !errors.Is(err, process.ErrClosed) || !errors.Is(err, executor.ErrUnavailable) {
		t.Errorf("got error %v, want ErrClosed", err)
	}
	if left := append(hostcase.List(runtime), append(processes(runtime), hostcase.Cgroups(was...)...)...); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// A runtime folder in which somebody else could swap files is refused.
func TestRuntimeFolderMustBePrivate(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o755), os.Symlink(dir, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"relative", open, filepath.Join(dir, "link"), "/proc/nowhere"} {
		e, err := process.New(process.Config{Runtime: path})
		if err == nil {
			e.Close()
			t.Errorf("%s: no error", path)
		}
	}
}

// The posture is of the lowest tier, proves what stands, and says of everything
// else that it does not stand and what to do.
func TestPosture(t *testing.T) {
	both(t, func(t *testing.T, c process.Config) {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
		e, runtime := open(t, c)
		p, err := e.Posture(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.Executor != "process" || p.Tier != grant.Process || p.Claimed {
			t.Errorf("got %+v", p)
		}
		stands := map[string]bool{}
		for _, wall := range p.Walls {
			stands[wall.Name] = wall.Stands
			if wall.Proof == "" || wall.Stands == (wall.Remedy != "") {
				t.Errorf("wall %+v has no proof, a remedy that nobody needs, or none", wall)
			}
		}
		for name, want := range map[string]bool{
			"staging": true, "environment": true, "descriptors": true, "core files": true, "files": false, "network": false, "other processes": false, "system calls": false,
		} {
			if got, ok := stands[name]; !ok || got != want {
				t.Errorf("wall %q: got %v (known: %v), want %v", name, got, ok, want)
			}
		}
		if c.NoCgroup && (stands["cleanup"] || stands["memory"] || stands["processes"]) {
			t.Errorf("without a cgroup, got %v", stands)
		}
		if got := hostcase.Cgroups(hostcase.Instances(runtime)...); stands["cleanup"] != (len(got) == 1) {
			t.Errorf("cleanup stands: %v, and the cgroups are %q", stands["cleanup"], got)
		}
	})
}

// Case 39c, in a language that the suite has no dialect for.
func TestMissingPerlModule(t *testing.T) {
	perl, err := interpreter.Find(t.Context(), "pl")
	if err != nil {
		if os.Getenv("TRACON_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	e, _ := open(t, process.Config{})
	w := executortest.NewWorld(map[string]gate.Interpreter{"pl": perl.Interpreter()})
	res := run(t, e, w, script("pl", "use Tracon::Missing;\n"))
	if code, _ := res.Ending.ExitCode(); code == 0 || len(res.Notes) != 1 || res.Notes[0] != `this host's pl has no package "Tracon::Missing"; the script needs it` {
		t.Errorf("got %v, notes %q, standard error %q", res.Ending, res.Notes, res.Stderr)
	}
}
