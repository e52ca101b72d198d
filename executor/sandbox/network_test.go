//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/executortest/hostile"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// servers are scripts with a server and a client of their own.
var servers = []struct{ name, ext, text, want string }{
	{"python http.server and urllib", "py", `import http.server, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'served')
    def log_message(self, *a): pass
for name in ('127.0.0.1', 'localhost'):
    s = http.server.ThreadingHTTPServer((name, 0), H)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    print(urllib.request.urlopen('http://%s:%d/' % (name, s.server_port)).read().decode())
`, "served\nserved\n"},
	{"node http and fetch", "js", `const http = require('http');
const s = http.createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', async () => {
  const r = await fetch('http://127.0.0.1:' + s.address().port);
  console.log(await r.text());
  s.closeAllConnections(); s.close();
});
`, "served\n"},
	{"two processes and UDP over IPv6", "py", `import os, socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::1', 0))
if os.fork() == 0:
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'hi', s.getsockname()); os._exit(0)
print(s.recv(9)); os.wait()
`, "b'hi'\n"},
}

func withLoopback(ext, text string) executortest.Order {
	o := script(ext, text)
	o.Policy.Network = gate.Loopback
	return o
}

// With loopback a script has a client and a server of its own; without it there
// are no such sockets, and a note says so.
func TestLoopback(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	for _, tc := range servers {
		t.Run(tc.name, func(t *testing.T) {
			if !hasIPv6() { // and so has no box
				tc.text = strings.NewReplacer("AF_INET6", "AF_INET", "::1", "127.0.0.1").Replace(tc.text)
			}
			res, err := e.Execute(t.Context(), admit(t, w, withLoopback(tc.ext, tc.text)))
			if err != nil || string(res.Stdout) != tc.want || res.Ending != executor.Exited(0) || len(res.Notes) > 0 {
				t.Errorf("with loopback: %q, %v, %v, notes %q: %s", res.Stdout, res.Ending, err, res.Notes, res.Stderr)
			}
			res, err = e.Execute(t.Context(), admit(t, w, script(tc.ext, tc.text)))
			if err != nil || res.Ending == executor.Exited(0) || !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "network") }) {
				t.Errorf("without: %q, %v, %v, notes %q", res.Stdout, res.Ending, err, res.Notes)
			}
		})
	}
	a, err := e.Execute(t.Context(), admit(t, w, withLoopback("sh", "true\n")))
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.Execute(t.Context(), admit(t, w, script("sh", "true\n")))
	if err != nil {
		t.Fatal(err)
	}
	if a.PostureDigest == b.PostureDigest {
		t.Error("the posture of a run with loopback is that of one without")
	}
	if !stands(t, e, "network, loopback") {
		t.Error("the posture says that loopback cannot stand")
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// B10: what waits in sockets that nobody reads from is not as much as a script wishes:
// no buffer grows, and all of them together hold what the posture says.
func TestLoopbackHoldsLittle(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	o := withLoopback("py", `import socket
for family, kind in (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    for option, shows in (7, 7), (8, 8), (32, 7), (33, 8):
        before = s.getsockopt(socket.SOL_SOCKET, shows)
        s.setsockopt(socket.SOL_SOCKET, option, 2 * before)
        if s.getsockopt(socket.SOL_SOCKET, shows) != before: print('grown', family, kind, option)
kept, held = [], 0
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); out.setblocking(False)
for _ in range(100):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.setblocking(False)
    kept.append(s)
    try:
        for _ in range(64): out.sendto(b'x' * 16384, s.getsockname())
    except OSError: pass
for s in kept:
    try:
        while True: held += len(s.recv(65536))
    except BlockingIOError: pass
print(held)
`)
	o.Policy.Memory = 64 << 20
	res, err := e.Execute(t.Context(), admit(t, w, o))
	held, perr := strconv.Atoi(strings.TrimSpace(string(res.Stdout)))
	if err != nil || perr != nil {
		t.Fatalf("%q, %v, %v: %s", res.Stdout, res.Ending, err, res.Stderr)
	}
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(posture.Walls, func(w executor.Wall) bool { return w.Name == "network, loopback" })
	if proof := posture.Walls[i].Proof; !strings.Contains(proof, "sockets") {
		t.Errorf("the posture does not say what limits sockets: %s", proof)
	} else if most := int(o.Policy.Memory / 4); strings.Contains(proof, "a quarter of its memory") && held > most {
		t.Errorf("%d bytes wait in sockets, want at most %d", held, most)
	}
}

// Each run's loopback is its own: one does not reach another's server, nor the host's.
func TestLoopbackIsTheRunsOwn(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if c, err := net.Dial("tcp4", l.Addr().String()); err != nil { // it can be reached
		t.Fatal(err)
	} else {
		c.Close()
	}
	o := withLoopback("py", "import socket\ns = socket.socket(); s.bind(('127.0.0.1', "+port+")); s.listen()\nprint('up', flush=True)\nimport time; time.sleep(300)\n")
	o.Live = gate.NewLive(0)
	serving := admit(t, w, o)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { _, err := e.Execute(ctx, serving); over <- err }()
	select {
	case c := <-o.Live.Chunks(): // so the host's own listener is not in its way either
		if !strings.HasPrefix(string(c.Data), "up") {
			t.Errorf("the server said %q", c.Data)
		}
	case err := <-over:
		t.Fatalf("the server has ended: %v", err)
	}
	res, err := e.Execute(t.Context(), admit(t, w, withLoopback("py", "import socket\ntry: socket.create_connection(('127.0.0.1', "+port+"), 5); print('in')\nexcept OSError as e: print(e.strerror)\n")))
	if err != nil || string(res.Stdout) != "Connection refused\n" {
		t.Errorf("another run: %q, %v: %s", res.Stdout, err, res.Stderr)
	}
	stop()
	<-over
}

// B2: what a box with loopback withstands is what one without does, but for the
// sockets that it has.
func TestHostileWithLoopback(t *testing.T) {
	e, runtime := open(t, sandbox.Config{})
	posture, err := e.Posture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hostile.Run(t, hostile.Setup{
		New: func(executortest.T) executor.Executor { return e }, Interpreters: hostcase.Interpreters(t), Lacks: hostile.Lacking(posture),
		Loopback: true, Policy: gate.Policy{Network: gate.Loopback}, Only: []string{"N01", "N02", "N03", "N18", "X12"},
		Leftovers: func() []string {
			return slices.DeleteFunc(left(e, runtime), func(s string) bool { return strings.Contains(s, "canary-") })
		},
	})
}

// All of it holds for an ordinary user.
func TestLoopbackAsAnotherUser(t *testing.T) {
	asNobody(t, false, "^(TestLoopback|TestLoopbackHoldsLittle|TestLoopbackIsTheRunsOwn|TestHostileWithLoopback)$")
}
