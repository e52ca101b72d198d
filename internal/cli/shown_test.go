package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// On a terminal all that a script wrote is there once, whatever of it was shown while it
// ran.
func TestRest(t *testing.T) {
	for _, tt := range []struct {
		name, whole, seen, want string
	}{
		{"all", "abc", "abc", ""},
		{"nothing", "abc", "", "abc"},
		{"the beginning", "abc", "a", "bc"},
		{"something is missing in between", "abc", "ac", "abc"},
		{"the beginning is missing", "abc", "bc", "abc"},
		{"bytes that were replaced", "a\uFFFDb", "a\xff\xfeb", ""},
		{"a character that was cut", "ab", "ab\xe2\x82", ""},
		{"of a run that failed", "", "abc", ""},
	} {
		if got := rest(tt.whole, []byte(tt.seen)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// R28: on a terminal, what a script wrote at a runner that shows nothing before the end is
// there all the same.
func TestTerminalOfAPlainRunner(t *testing.T) {
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != "/runs" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"exitCode":0,"standardOutput":"from elsewhere\n","standardError":"and amiss\n"}`)
	}))
	defer r.Close()
	dir := t.TempDir()
	settings := filepath.Join(dir, "tracon.yaml")
	text := "enabled: true\nexecutor: remote\nremote: " + r.URL + "\nremote_reach: [loopback]\ninterpreters: {sh: runtime:sh}\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TRACON_DATA": filepath.Join(dir, "d"), "TRACON_STATE": filepath.Join(dir, "state"), "HOME": dir, "XDG_RUNTIME_DIR": dir, "TRACON_CONFIG": settings}
	say := func(words ...string) (int, string) {
		out := new(watched)
		a := &app{in: strings.NewReader(""), out: out, err: out, outTTY: true, dir: dir, getenv: func(k string) string { return env[k] }}
		return a.main(t.Context(), words), out.text.String()
	}
	script := filepath.Join(dir, "s.sh")
	if err := os.WriteFile(script, []byte("echo x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(words ...string) string {
		code, text := say(words...)
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", words, code, text)
		}
		return text
	}
	must("policy", "set", "--enabled", "--interpreters", "sh")
	must("skill", "import", script, "--name", "s", "--arguments", "stdin")
	digest := regexp.MustCompile("sha256:[0-9a-f]{64}").FindString(must("grant", "review", "s", "s.sh"))
	must("grant", "add", "s", "s.sh", "--digest", digest)
	text = must("run", "s", "s.sh", "--args", "{}")
	if strings.Count(text, "from elsewhere") != 1 || strings.Count(text, "and amiss") != 1 {
		t.Errorf("the terminal shows %q", text)
	}
}
