package cli

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
)

// Case 28: nothing that a script writes acts on a terminal.
func TestHarmless(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "ünï → ok\n\tx", "ünï → ok\n\tx"},
		{"escape", "\x1b[31mred", `\x1b[31mred`},
		{"8-bit control", "\u009b31m", `\u{9b}31m`},
		{"carriage return", "good\rbad", `good\x0dbad`},
		{"NUL", "a\x00b", `a\x00b`},
		{"direction", "a\u202eb", `a\u{202e}b`},
		{"zero width", "a\u200bb", `a\u{200b}b`},
		{"line separator", "a\u2028b", `a\u{2028}b`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"replacement character", "a\uFFFDb", `a\u{fffd}b`},
	}
	for _, tt := range tests {
		if got := harmless(tt.in, true); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := harmless("a\nb", false); got != `a\x0ab` {
		t.Errorf("a line feed in one line: %q", got)
	}
}

func FuzzHarmless(f *testing.F) {
	f.Add("\x1b]0;title\x07\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range harmless(s, false) {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				t.Errorf("%q still holds %q", s, r)
			}
		}
	})
}

// The codes of decisions.md, for each thing that can come of a call.
func TestRunExit(t *testing.T) {
	tests := []struct {
		name string
		end  executor.Ending
		err  error
		want int
	}{
		{"zero", executor.Exited(0), nil, 0},
		{"own", executor.Exited(123), nil, 123},
		{"124 is ours", executor.Exited(124), nil, 123},
		{"255", executor.Exited(255), nil, 123},
		{"signal", executor.Signaled(9), nil, 137},
		{"the last signal", executor.Signaled(64), nil, 192},
		{"M01: 128 and it are 256, which a system cuts to 0", executor.Signaled(128), nil, 125},
		{"M01: one that makes it 1", executor.Signaled(-127), nil, 125},
		{"timed out", executor.Expired(), nil, 124},
		{"out of memory", executor.OutOfMemory(), nil, 125},
		{"busy", executor.Ending{}, tracon.ErrBusy, 125},
		{"refused", executor.Ending{}, &gate.Denial{Gate: gate.PinGate, Err: errors.New("x")}, 126},
		{"log", executor.Exited(0), audit.ErrUnavailable, 125},
		{"no ending", executor.Ending{}, nil, 125},
	}
	for _, tt := range tests {
		if got := runExit(tracon.Outcome{Ending: tt.end}, tt.err); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", tt.name, got, tt.want)
		}
	}
	lost := ended{out: ran{Outcome: tracon.Outcome{Ending: executor.Exited(3)}}, lost: map[string]error{"a": fs.ErrExist}}
	if got := lost.exit(); got != 125 {
		t.Errorf("files that were not written: exit code %d, want 125", got)
	}
}

var flagsDecl = gate.Declaration{
	Mode: gate.Flags,
	Schema: []byte(`{"type":"object","properties":{"value":{"type":"number"},"verbose":{"type":"boolean"},"dry_run":{"type":"boolean"},
		"tag":{"type":"array","items":{"type":"string"}},"name":{"type":"string"},"input":{"type":"string"},"rest":{"type":"array"}}}`),
	Flags: map[string]gate.Flag{"verbose": {Flag: "-v"}, "input": {Position: 1}, "rest": {Position: 2}},
}

// Words behind -- become the value that the gates check; what they cannot be is said.
func TestArgumentsOf(t *testing.T) {
	tests := []struct {
		name  string
		d     gate.Declaration
		words []string
		want  string
		err   string
	}{
		{"none", flagsDecl, nil, "", ""},
		{"argv", gate.Declaration{Mode: gate.Argv}, []string{"--a", "", "ü"}, `["--a","","ü"]`, ""},
		{"not UTF-8", gate.Declaration{Mode: gate.Argv}, []string{"\xff"}, "", "UTF-8"},
		{"stdin", gate.Declaration{Mode: gate.Stdin}, []string{"a"}, "", "--args"},
		{"none takes none", gate.Declaration{Mode: gate.None}, []string{"a"}, "", "no arguments"},
		{"a number as written", flagsDecl, []string{"--value", "9007199254740993"}, `{"value":9007199254740993}`, ""},
		{"a number that is none", flagsDecl, []string{"--value", "x"}, `{"value":"x"}`, ""},
		{"negative", flagsDecl, []string{"--value", "-5"}, `{"value":-5}`, ""},
		{"joined", flagsDecl, []string{"--name=a=b"}, `{"name":"a=b"}`, ""},
		{"booleans", flagsDecl, []string{"-v", "--dry-run"}, `{"dry_run":true,"verbose":true}`, ""},
		{"joined boolean", flagsDecl, []string{"--dry-run=false"}, `{"dry_run":false}`, ""},
		{"repeated", flagsDecl, []string{"--tag", "a", "--tag", "b"}, `{"tag":["a","b"]}`, ""},
		{"positions", flagsDecl, []string{"in.txt", "-v", "x", "y"}, `{"input":"in.txt","rest":["x","y"],"verbose":true}`, ""},
		{"behind --", flagsDecl, []string{"--", "-v"}, `{"input":"-v"}`, ""},
		{"twice", flagsDecl, []string{"--name", "a", "--name", "b"}, "", "twice"},
		{"no value", flagsDecl, []string{"--name"}, "", "needs a value"},
		{"unknown", flagsDecl, []string{"--nome", "a"}, "", "no flag"},
		{"one too many", gate.Declaration{Mode: gate.Flags}, []string{"a"}, "", "too many"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := argumentsOf(tt.d, tt.words)
			if tt.err != "" {
				said := ""
				if err != nil {
					said = err.Error()
					if h, ok := errors.AsType[*hintError](err); ok {
						said += " " + h.hint
					}
				}
				if !strings.Contains(said, tt.err) {
					t.Fatalf("err = %q, want it to hold %q", said, tt.err)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
			if tt.want != "" && !json.Valid(got) {
				t.Errorf("%s is not JSON", got)
			}
		})
	}
}

func TestParseExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		if got, err := parseExpiry("", now); err != nil || !got.IsZero() {
			t.Errorf("never: %v, %v", got, err)
		}
		if got, err := parseExpiry("48h", now); err != nil || !got.Equal(now.Add(48*time.Hour)) {
			t.Errorf("48h: %v, %v", got, err)
		}
		if got, err := parseExpiry("2027-01-31T00:00:00Z", now); err != nil || got.Year() != 2027 {
			t.Errorf("a time: %v, %v", got, err)
		}
		for _, bad := range []string{"-1h", "0s", "tomorrow", "2027-01-31"} {
			if _, err := parseExpiry(bad, now); err == nil {
				t.Errorf("%q: no error", bad)
			}
		}
	})
}

// A script chooses the names of its output files: none leaves the folder.
func TestWriteOutputsStaysInside(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(out, "link")); err != nil {
		t.Fatal(err)
	}
	folder, err := openOut(out)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.close()
	for _, path := range []string{"../escaped", "link/escaped", "a/../../escaped"} {
		if lost := folder.write([]bundle.File{{Path: path, Data: []byte("x")}}); lost[path] == nil {
			t.Errorf("%s: no error", path)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "escaped")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written outside: %v", err)
	}
	fresh, err := openOut(filepath.Join(dir, "new", "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.close()
	if lost := fresh.write([]bundle.File{{Path: "a/b", Data: []byte("x")}}); len(lost) > 0 {
		t.Error(lost)
	}
}

// Input files are read within the limit, and links in a folder are refused by name.
func TestReadInputs(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{"in.txt": "hello", "d/a": "a", "d/b/c": "c"} {
		p := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := readInputs([]string{filepath.Join(dir, "in.txt"), filepath.Join(dir, "d") + "=x"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Path+"="+string(f.Data))
	}
	if want := "in.txt=hello x/a=a x/b/c=c"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, err := readInputs([]string{filepath.Join(dir, "in.txt")}, 4); err == nil || !strings.Contains(err.Error(), "more than 4 bytes") {
		t.Errorf("over the limit: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "d", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := readInputs([]string{filepath.Join(dir, "d")}, 100); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
}

// Every verb says what it does and shows how.
func TestEveryVerbHasHelp(t *testing.T) {
	a := &app{out: io.Discard, err: io.Discard, getenv: func(string) string { return "" }}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no short help", cmd.CommandPath())
		}
		if !strings.Contains(cmd.Example, "tracon") {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(a.root())
}
