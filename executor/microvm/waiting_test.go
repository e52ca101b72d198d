//go:build microvm && linux && amd64

package microvm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/microvm"
	"github.com/tracon-go/tracon/gate"
)

// What a script sees of its interpreter: in the first line how that was started, in the
// second chance, and then all that must not depend on either.
var sees = map[string]string{
	"py": `import os, random, sys, uuid
print(open("/proc/self/cmdline").read().replace("\0", " "))
print(uuid.uuid4(), random.random(), os.urandom(8).hex(), hash("x"))
print(sys.argv, sys.orig_argv, sys.path, sys.flags, os.getcwd(), sorted(os.environ.items()))
print([os.readlink("/proc/self/fd/0").split(":")[0]], sys.stdin.read(), len(os.listdir("/proc/self/fd")))
status = open("/proc/self/status").read().splitlines()
print([l for l in status if l.split(":")[0] in ("Uid", "Gid", "Groups", "CapBnd", "CapEff", "NoNewPrivs", "Seccomp", "Seccomp_filters", "SigIgn")])
print(open("/proc/self/limits").read(), open("/proc/self/cgroup").read(), os.getsid(0) == os.getpid(), oct(os.umask(0)))
open("outputs/made", "w").write("made")
raise ValueError("at last")
`,
	"js": `const fs = require('fs');
console.log(fs.readFileSync('/proc/self/cmdline', 'utf8').replaceAll('\0', ' '));
console.log(require('crypto').randomUUID(), Math.random(), require('crypto').randomBytes(8).toString('hex'));
console.log(process.argv, process.execArgv, require.main === module, __filename, process.cwd(), process.env, fs.readFileSync(0, 'utf8'));
console.log(fs.readdirSync('/proc/self/fd').length, fs.readFileSync('/proc/self/limits', 'utf8'), new Error('here').stack);
fs.writeFileSync('outputs/made', 'made');
new (require('worker_threads').Worker)('throw new Error("of a worker")', { eval: true }).on('error', (e) => { throw e; });
`,
}

// B5, U14: in a machine that was made ahead Python and Node.js wait for their script. That
// cannot tell the difference, and has chance of its own. An interpreter that was started
// with something else than the run asks for is not handed the script.
func TestWaiting(t *testing.T) {
	for ext, text := range sees {
		t.Run(ext, func(t *testing.T) { testWaiting(t, ext, text) })
	}
}

// A sight is what a script saw: how its interpreter was started, and the rest.
type sight struct{ started, rest string }

func testWaiting(t *testing.T, ext, text string) {
	e, _ := open(t, microvm.Config{Ahead: 2})
	w := executortest.NewWorld(interpreters(t))
	chance := map[string]bool{}
	run := func(o executortest.Order, ahead bool) sight {
		t.Helper()
		req, err := w.Admit(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if ahead {
			if err := microvm.AwaitAhead(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		res, err := e.Execute(t.Context(), req)
		if err != nil || res.Ending != executor.Exited(1) || len(res.Outputs) != 1 {
			t.Fatalf("got %v, %v, %q; standard error: %.500q", res.Ending, err, res.Outputs, res.Stderr)
		}
		lines := strings.SplitN(string(res.Stdout), "\n", 3)
		for word := range strings.FieldsSeq(lines[1]) {
			if chance[word] {
				t.Errorf("U14: two runs have %q alike", word)
			}
			chance[word] = true
		}
		return sight{lines[0], lines[2] + string(res.Stderr)}
	}
	check := func(name string, o executortest.Order, ahead, waited bool, want string) {
		t.Helper()
		got := run(o, ahead)
		if strings.Contains(got.started, "/etc/tracon/wait.") != waited {
			t.Errorf("%s: started as %q; it waited: want %t", name, got.started, waited)
		}
		if got.rest != want {
			t.Errorf("B5: %s: the script sees\n%s\nand saw\n%s", name, got.rest, want)
		}
	}
	o := script(ext, text)
	o.Tenant = "tenant"
	first := run(o, false)
	check("restored", o, false, false, first.rest)
	check("ahead", o, true, true, first.rest)
	if ext != "py" {
		return
	}
	other := o
	other.Policy.Timeout = time.Hour // it limits the processor's time, too
	check("another limit", other, true, false, strings.ReplaceAll(first.rest, "1801", "3601"))
	o.Mode, o.Arguments = gate.Stdin, map[string]string{"name": "Ada"}
	with := run(o, false)
	if !strings.Contains(with.rest, "Ada") {
		t.Fatalf("got %s", with.rest)
	}
	for range 2 { // until the one that waits is for this
		run(o, false)
	}
	check("standard input", o, true, true, with.rest)
}
