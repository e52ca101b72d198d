package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tracon-go/tracon/internal/outbound"
	"github.com/tracon-go/tracon/wire"
)

// A Runner is a runner service to look at, ours or anybody's. Address, Tenant and
// Runtimes are required.
type Runner struct {
	Address  string
	Key      string            // bearer; empty: none is sent
	TLS      *tls.Config       // nil: the system's roots
	Tenant   string            // that the key may ask for
	Runtimes map[string]string // a runtime's name to the extension of its scripts; empty: those that the runner tells of
	Over     func(Check)       // called when a rule was looked at; nil: nobody

	Info wire.Info // set by Run: what the runner tells of itself

	client *http.Client
	base   *url.URL
}

// ErrStranger is wrapped when the runner does not know who asks: look again with another
// key or certificate.
var ErrStranger = errors.New("it does not know who asks")

// runnerTime is the time of one request beyond its script's timeout.
const runnerTime = time.Minute

// Run looks at the runner: the wire of R28 in each language, and what is this house's own
// where the runner says that it knows it. It returns what came of each rule; one that a
// runner may do without, and does not offer, is not looked at.
//
// # Errors
//
// ErrStranger; what says that the address is none or that there is no runtime; the cause
// of ctx; one of the connection. What was known before is returned too.
func (r *Runner) Run(ctx context.Context) ([]Check, error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	var checks []Check
	tell := func(c Check) {
		checks = append(checks, c)
		if r.Over != nil {
			r.Over(c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Runtimes)) {
		p, ok := programs[r.Runtimes[name]]
		if !ok {
			continue
		}
		rules := plainRules
		if r.Info.Knows() {
			rules = slices.Concat(plainRules, ourRules)
		}
		if r.Info.Shows() {
			rules = slices.Concat(rules, liveRules)
		}
		for _, rule := range rules {
			err := rule.check(&asking{ctx, r, name, p})
			if ctx.Err() != nil {
				return checks, context.Cause(ctx)
			}
			c := Check{Language: name, Rule: rule.name, OK: err == nil}
			if err != nil {
				c.Faults = []string{rule.rule + ": " + err.Error()}
			}
			tell(c)
		}
		if r.Info.Shows() {
			continue
		}
		for _, rule := range liveRules {
			tell(Check{Language: name, Rule: rule.name, OK: true, NotOffered: true})
		}
	}
	if len(checks) == 0 {
		return nil, errors.New("there is no runtime whose language the suite has scripts in (sh, py, js): name one with --runtime")
	}
	return checks, nil
}

// open finds out what the runner tells of itself.
func (r *Runner) open(ctx context.Context) error {
	base, err := url.Parse(r.Address)
	if err != nil {
		return errors.New("the address is no URL; write one such as https://runner.example.com")
	}
	reach, err := outbound.ParseReach("", []string{outbound.Loopback, outbound.Private}) // whoever asks names it himself
	if err != nil {
		return err
	}
	if err := reach.CheckURL(base); err != nil {
		return err
	}
	r.base = base
	r.client = outbound.Client(reach.Transport(outbound.Options{TLS: r.TLS, MaxAnswer: wire.MaxSmall}), runnerTime)
	status, text, err := r.send(ctx, http.MethodGet, "info", nil, r.Key)
	if err != nil {
		return err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return fmt.Errorf("%w: status %d", ErrStranger, status)
	}
	if status/100 == 2 {
		if info, err := wire.ReadInfo(bytes.NewReader(text)); err == nil {
			r.Info = info
		}
	}
	if r.Info.RequireTicket {
		return errors.New("the runner asks for a ticket with each run: look at it with tickets switched off")
	}
	if len(r.Runtimes) == 0 {
		r.Runtimes = map[string]string{}
		for _, rt := range r.Info.Runtimes {
			r.Runtimes[rt.Name] = rt.Extension
		}
	}
	return nil
}

func (r *Runner) request(ctx context.Context, method, path string, body []byte, key string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

func (r *Runner) send(ctx context.Context, method, path string, body []byte, key string) (int, []byte, error) {
	req, err := r.request(ctx, method, path, body, key)
	if err != nil {
		return 0, nil, err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, text, errors.Join(err, res.Body.Close())
}

// A program is what the rules need in one language. Each prints as its name says.
type program struct {
	extension string
	echo      string // standard input to standard output, "err" to standard error; exits with 7
	words     string // its arguments, a line each
	loud      string // 3000 times "x"
	slow      string // "so far", and then it sleeps
	sibling   string // what the file "lib" beside it holds
	out       string // writes outputs/a.txt, with what inputs/b.txt holds
}

var programs = map[string]program{
	"sh": {"sh", "cat; printf err >&2; exit 7\n", "for a in \"$@\"; do printf '%s\\n' \"$a\"; done\n", "i=0; while [ $i -lt 300 ]; do printf xxxxxxxxxx; i=$((i+1)); done\n",
		"printf 'so far'; sleep 60\n", "cat lib\n", "cat inputs/b.txt >outputs/a.txt\n"},
	"py": {"py", "import sys\nsys.stdout.write(sys.stdin.read()); sys.stderr.write('err'); sys.exit(7)\n", "import sys\nfor a in sys.argv[1:]: print(a)\n", "print('x'*3000, end='')\n",
		"import time\nprint('so far', end='', flush=True); time.sleep(60)\n", "print(open('lib').read(), end='')\n", "open('outputs/a.txt', 'w').write(open('inputs/b.txt').read())\n"},
	"js": {"js", "process.stdin.pipe(process.stdout); process.stderr.write('err'); process.exitCode = 7\n", "for (const a of process.argv.slice(2)) console.log(a)\n", "process.stdout.write('x'.repeat(3000))\n",
		"process.stdout.write('so far'); setTimeout(() => {}, 60000)\n", "process.stdout.write(require('fs').readFileSync('lib'))\n", "const fs = require('fs'); fs.copyFileSync('inputs/b.txt', 'outputs/a.txt')\n"},
}

// asking is one rule in one language.
type asking struct {
	ctx     context.Context
	r       *Runner
	runtime string
	program program
}

// answer posts the body, and reads an answer of status 2xx.
func (a *asking) answer(body []byte) (wire.Answer, error) {
	status, text, err := a.r.send(a.ctx, http.MethodPost, "runs", body, a.r.Key)
	if err != nil {
		return wire.Answer{}, err
	}
	if status/100 != 2 {
		return wire.Answer{}, fmt.Errorf("status %d: %.200q", status, text)
	}
	return wire.ReadAnswer(bytes.NewReader(text), 0)
}

// refuses holds that the body is answered by a status outside 2xx.
func (a *asking) refuses(body []byte, key string) error {
	status, text, err := a.r.send(a.ctx, http.MethodPost, "runs", body, key)
	if err == nil && status/100 == 2 {
		err = fmt.Errorf("status %d: %.200q; want a refusal", status, text)
	}
	return err
}

func expect(got wire.Answer, code int, stdout, stderr string) error {
	if got.ExitCode == nil || *got.ExitCode != code || got.StandardOutput != stdout || got.StandardError != stderr || got.TimedOut {
		return fmt.Errorf("got exit code %s, output %.100q, %.100q, timed out %t; want %d, %q, %q", text(got.ExitCode), got.StandardOutput, got.StandardError, got.TimedOut, code, stdout, stderr)
	}
	return nil
}

func text(code *int) string {
	if code == nil {
		return "none"
	}
	return fmt.Sprint(*code)
}

// run is a run of the wire of R28.
func (a *asking) run(source string) wire.Run {
	return wire.Run{Tenant: a.r.Tenant, Runtime: a.runtime, Source: source, SourceSHA256: sum(source), TimeoutSeconds: 30, MaxOutputBytes: 64 << 10}
}

// tells holds what a problem of this house must say of a refusal.
func (a *asking) tells(run wire.Run, code string) error {
	body, err := run.Encode()
	if err != nil {
		return err
	}
	status, text, err := a.r.send(a.ctx, http.MethodPost, "runs", body, a.r.Key)
	if err != nil {
		return err
	}
	p, err := wire.ReadProblem(bytes.NewReader(text))
	if err != nil || status/100 == 2 || p.Code != code || !p.NotStarted {
		return fmt.Errorf("status %d, %.200q; want the problem %q, not started", status, text, code)
	}
	return nil
}
