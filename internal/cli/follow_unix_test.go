//go:build unix

package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// serveHere serves a data folder of its own until the test ends, and returns what says
// words to it as a terminal does.
func serveHere(t *testing.T) func(ctx context.Context, out *watched, words ...string) int {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	env := map[string]string{"TRACON_DATA": filepath.Join(dir, "d"), "TRACON_STATE": filepath.Join(dir, "state"), "HOME": dir, "XDG_RUNTIME_DIR": dir,
		"TRACON_EXECUTOR": "process", "TRACON_LISTEN": "127.0.0.1:0", "TRACON_DRAIN": "1ms"}
	getenv := func(k string) string { return env[k] }
	load := func() (*config.Config, error) { return config.Load(config.Source{Getenv: getenv, Dir: dir}) }
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	started, ended := make(chan daemon.Started, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, c, daemon.ServeOptions{Load: load, Logger: slog.New(slog.DiscardHandler), Version: "test",
			Started: func(s daemon.Started) error { started <- s; return nil }})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case s := <-started:
		env["TRACON_SERVER"] = "unix://" + s.Socket
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return func(ctx context.Context, out *watched, words ...string) int {
		a := &app{in: strings.NewReader(""), out: out, err: out, outTTY: true, dir: dir, getenv: getenv}
		return a.main(ctx, words)
	}
}

// On a terminal, what a script writes on a server is shown while it runs, once and
// harmless (case 28); an interrupt stops it there, and its ending says so (R24).
func TestFollowOnAServer(t *testing.T) {
	say := serveHere(t)
	must := func(words ...string) string {
		t.Helper()
		out := new(watched)
		if code := say(t.Context(), out, words...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", words, code, out.text.String())
		}
		return out.text.String()
	}
	script := filepath.Join(t.TempDir(), "s.sh")
	// It ends when the file that its argument names is there.
	text := "printf 'be\\033[31mgun\\n'; while [ ! -e \"$1\" ]; do sleep 0.05; done; echo over; echo amiss >&2\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	must("policy", "set", "--host", "--enabled", "--interpreters", "sh=/bin/sh")
	must("policy", "set", "--enabled", "--interpreters", "sh", "--timeout", "10m")
	must("skill", "import", script, "--name", "s", "--arguments", "argv")
	digest := regexp.MustCompile("sha256:[0-9a-f]{64}").FindString(must("grant", "review", "s", "s.sh"))
	must("grant", "add", "s", "s.sh", "--digest", digest, "--tier", "process")

	// The script goes on only when its first words were seen.
	flag := filepath.Join(t.TempDir(), "flag")
	out := &watched{seen: func(text string) {
		if strings.Contains(text, "gun") {
			os.WriteFile(flag, nil, 0o600)
		}
	}}
	if code := say(t.Context(), out, "run", "s", "s.sh", "--", flag); code != 0 {
		t.Errorf("exit code %d", code)
	}
	got := out.text.String()
	if strings.Count(got, `be\x1b[31mgun`) != 1 || strings.Count(got, "over") != 1 || strings.Count(got, "amiss") != 1 || !strings.Contains(got, "exit code 0 in ") {
		t.Errorf("the terminal shows %q", got)
	}

	ctx, interrupt := context.WithCancelCause(t.Context())
	out = &watched{seen: func(text string) {
		if strings.Contains(text, "gun") {
			interrupt(interrupted{syscall.SIGINT})
		}
	}}
	if code := say(ctx, out, "run", "s", "s.sh", "--", flag+"-never"); code != 130 {
		t.Errorf("interrupted: exit code %d, want 130: %s", code, out.text.String())
	}
	// The caller has its answer at once; the record comes when the script is gone.
	for end := time.Now().Add(3 * time.Minute); ; {
		seen := new(watched)
		say(t.Context(), seen, "calls", "list") // one that the server's rate refuses is asked again
		list := seen.text.String()
		if strings.Count(list, "cancelled") == 1 && strings.Count(list, "exit code 0") == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the records are:\n%s", list)
		}
	}
}
