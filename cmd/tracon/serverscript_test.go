package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// serverCommands are what scripts say about servers.
var serverCommands = map[string]func(*testscript.TestScript, bool, []string){
	"serve":       serve,
	"both":        both,
	"grabboth":    grabBoth,
	"certificate": certificate,
}

// theTest is the key of a script's test.
type theTest struct{}

// serve [VARIABLE=VALUE]... starts `tracon serve` with a data folder of its own, and
// returns when it serves. It sets ADDRESS, SOCKET and SERVED, the data folder, which
// has the platform's first key in first.key, and ends it with the script. With
// TRACON_DATA it serves that folder.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serve [VARIABLE=VALUE]...")
	}
	folder, err := os.MkdirTemp("", "s") // the path of a socket is short
	ts.Check(err)
	c := exec.Command(filepath.Join(ts.Getenv("BIN"), "tracon"), "serve", "--json")
	c.Dir = folder
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	c.Env = append(append(c.Env, "TRACON_DATA="+filepath.Join(folder, "d"), "TRACON_STATE="+filepath.Join(folder, "state"), "TRACON_LISTEN=127.0.0.1:0"), args...)
	var log strings.Builder
	c.Stderr = &log
	out, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	ts.Defer(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		for line := range strings.Lines(log.String()) {
			if !strings.Contains(line, `"level":"INFO"`) {
				ts.Logf("the server's log: %s", line)
			}
		}
		if err := gone(folder); err != nil {
			ts.Value(theTest{}).(testscript.T).Fatal(err) // a script fails in its lines alone
		}
	})
	var started struct{ Address, Socket string }
	if err := json.NewDecoder(out).Decode(&started); err != nil {
		ts.Fatalf("the server did not start: %v", err)
	}
	ts.Setenv("ADDRESS", started.Address)
	ts.Setenv("SOCKET", "unix://"+started.Socket)
	ts.Setenv("SERVED", filepath.Dir(started.Socket))
}

// gone removes the folder of a server that was killed: what it had started may write there
// for a moment yet, and nobody but root removes from a runtime, which is read-only, before
// it is made writable.
func gone(folder string) error {
	var err error
	for range 600 {
		_ = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil // what cannot be walked cannot be removed, which tells it
		})
		if err = os.RemoveAll(folder); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// both WORDS... says `tracon WORDS` to the local data folder ($WORK/here) and to the
// server ($ADDRESS, with the key in the file key), and wants the same of both: exit
// code, standard output and standard error, but for what is another each time. With !
// it wants a failure of both. In WORDS, @NAME stands for what grabboth has kept.
func both(ts *testscript.TestScript, neg bool, args []string) {
	run := func(where string, env map[string]string, more ...string) (told string, ok bool) {
		var words []string
		for _, w := range args {
			if name, is := strings.CutPrefix(w, "@"); is {
				w = ts.Getenv(name + "_" + where)
			}
			words = append(words, w)
		}
		for name, value := range env {
			ts.Setenv(name, value)
		}
		err := ts.Exec("tracon", append(more, words...)...)
		for name := range env {
			ts.Setenv(name, "")
		}
		stdout := ts.ReadFile("stdout")
		ts.Check(os.WriteFile(ts.MkAbs("stdout_"+where), []byte(stdout), 0o600))
		code := "exit code 0"
		if err != nil {
			code = err.Error()
		}
		return sameEachTime(code + "\n" + stdout + "\n-- stderr\n" + ts.ReadFile("stderr")), err == nil
	}
	work := ts.Getenv("WORK")
	here, ok := run("HERE", map[string]string{"TRACON_DATA": filepath.Join(work, "here"), "TRACON_STATE": filepath.Join(work, "state"), "TRACON_PRODUCTION": "true"}, "--actor", "somebody")
	there, _ := run("THERE", map[string]string{"TRACON_SERVER": ts.Getenv("ADDRESS"), "TRACON_KEY_FILE": filepath.Join(work, "key")})
	if diff := cmp.Diff(here, there); diff != "" {
		ts.Fatalf("tracon %s differs between the data folder (-) and the server (+):\n%s", strings.Join(args, " "), diff)
	}
	if ok == neg {
		ts.Fatalf("tracon %s: success is %v\n%s", strings.Join(args, " "), ok, here)
	}
}

// anew is what is another each time, or with each who asks.
var anew = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`), "WHILE"},
	{regexp.MustCompile(`("(waited|duration)(Seconds)?": )"?[0-9.e-]+(µs|ms|s)?"?`), "${1}WHILE"},
	{regexp.MustCompile(`key [a-z2-7]{16} [a-z]+|\bsomebody\b`), "WHO"},
	{regexp.MustCompile(`\b[a-z2-7]{16}\b`), "KEY"},
	{regexp.MustCompile(`tracon_[a-z2-7]{16}_[a-z2-7]+`), "SECRET"},
	{regexp.MustCompile(`"(index|admissionIndex|seq)": ?\d+|\bentry \d+|--from \d+|(?m)^\d+ +TIME`), "PLACE"},
	{regexp.MustCompile(`"(receipt|leaf)": ?"[^"]+"`), "PROOF"},
	// What is of the host alone, a tenant is not told.
	{regexp.MustCompile(`py runs with /usr/bin/python3|the host and the tenant's policy allow the script's interpreter`), "RUNS"},
	{regexp.MustCompile(`executor \\?"sandbox\\?" stands at .* is asked for|the executor stands as high as the grant and the policy ask`), "STANDS"},
	{regexp.MustCompile(` *"source": "[^"]+",\n`), ""},
	{regexp.MustCompile(`(sha256:)?\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(` {2,}`), " "},
	{regexp.MustCompile(` +\n`), "\n"},
}

func sameEachTime(s string) string {
	for _, a := range anew {
		s = a.what.ReplaceAllString(s, a.word)
	}
	return s
}

// grabboth NAME REGEXP keeps the first group of REGEXP, or all of it, in the standard
// outputs of the last both, for @NAME.
func grabBoth(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grabboth NAME REGEXP")
	}
	for _, where := range []string{"HERE", "THERE"} {
		m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile(ts.MkAbs("stdout_" + where)))
		if m == nil {
			ts.Fatalf("no match for %q in what %s said", args[1], where)
		}
		ts.Setenv(args[0]+"_"+where, m[len(m)-1])
	}
}

// certificate NAME makes a certificate for 127.0.0.1 in NAME.pem, signed by itself, and
// its key in NAME.key.
func certificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: certificate NAME")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	now := time.Now()
	c := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: args[0]}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}
