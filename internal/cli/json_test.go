package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each verb takes --json: all that it writes to standard output is JSON then, one
// value or one a line. A verb that is new needs a line here.
func TestEveryVerbTakesJSON(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(filepath.Join(dir, "receipt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TRACON_DATA": filepath.Join(dir, "data"), "TRACON_STATE": filepath.Join(dir, "state"), "HOME": dir, "TRACON_EXECUTOR": "process"}
	tests := []struct {
		words string // in the order in which they work
		fails bool   // and may write nothing then
	}{
		{words: "version"},
		{words: "config print"},
		{words: "man man"},
		{words: "skill init greeter"},
		{words: "skill schema"},
		{words: "skill lint ./greeter"},
		{words: "skill show ./greeter"},
		{words: "skill import ./greeter"},
		{words: "skill list"},
		{words: "skill history greeter"},
		{words: "skill diff greeter ./greeter"},
		{words: "skill export greeter copy"},
		{words: "policy set --enabled --interpreters py"},
		{words: "policy show"},
		{words: "grant review greeter scripts/hello.py"},
		{words: "grant list"},
		{words: "grant add greeter scripts/hello.py", fails: true},
		{words: "grant diff greeter scripts/hello.py", fails: true},
		{words: "grant revoke nope", fails: true},
		{words: "calls list"},
		{words: "calls show nope", fails: true},
		{words: "calls usage"},
		{words: "audit list"},
		{words: "audit checkpoint"},
		{words: "audit verify"},
		{words: "audit prove 0"},
		{words: "audit receipt check receipt", fails: true},
		{words: "audit export"},
		{words: "audit history nowhere", fails: true},
		{words: "microvm prepare --kernel nowhere --modules nowhere", fails: true},
		{words: "microvm show", fails: true}, // nothing is prepared
		{words: "audit rotate-key"},
		{words: "audit accept-loss --reason x", fails: true},
		{words: "retention show"},
		{words: "retention preview"},
		{words: "retention apply"},
		{words: "tenant create acme"},
		{words: "tenant create acme", fails: true},
		{words: "tenant list"},
		{words: "tenant show acme"},
		{words: "tenant set acme --max-keys 2"},
		{words: "key create ci --role reader --tenant acme"},
		{words: "key list --tenant acme"},
		{words: "key show nope --tenant acme", fails: true},
		{words: "key rotate nope --tenant acme", fails: true},
		{words: "key revoke nope --tenant acme", fails: true},
		{words: "runner key create host --tenants acme"},
		{words: "runner key list"},
		{words: "runner key revoke nope", fails: true},
		{words: "runner list", fails: true}, // there is no fleet
		{words: "runner drain nope", fails: true},
		{words: "runner join-key fleet.seed"},
		{words: "tenant delete acme --preview"},
		{words: "tenant delete acme", fails: true},
		{words: "runtime list"},
		{words: "runtime import x nowhere", fails: true},
		{words: "runtime pull x 127.0.0.1:1/x:1", fails: true},
		{words: "runtime show x", fails: true},
		{words: "runtime remove x", fails: true},
		{words: "skill delete greeter"},
		{words: "fsck"},
		{words: "conformance hostile --list"},
	}
	// What needs a deployed executor, or never ends, is in the scripts of the real binary.
	elsewhere := []string{"run", "explain", "doctor", "conformance executor", "conformance runner", "runner serve", "witness serve", "serve", "mcp"}

	named := map[string]bool{}
	for _, words := range elsewhere {
		named["tracon "+words] = true
	}
	for _, tt := range tests {
		var out, errs bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &errs, dir: dir, getenv: func(k string) string { return env[k] }}
		words := strings.Fields(tt.words)
		found, _, err := a.root().Find(words)
		if err != nil {
			t.Fatal(err)
		}
		named[found.CommandPath()] = true
		code := a.main(t.Context(), append(words, "--json"))
		if !tt.fails && (code > exitError || out.Len() == 0 || code == exitError && errs.Len() > 0) {
			t.Errorf("%s: exit code %d, %d bytes: %s", tt.words, code, out.Len(), errs.String())
		}
		told := strings.TrimPrefix(errs.String(), "tracon: ")
		if word, _, _ := strings.Cut(told, ": "); slices.Contains(rooms, word) {
			t.Errorf("%s: a user reads the name of a package: %s", tt.words, told)
		}
		for dec := json.NewDecoder(&out); ; {
			var v any
			if err := dec.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: standard output is not JSON: %v", tt.words, err)
				break
			}
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return // they are for shells and for people
		}
		if !cmd.HasSubCommands() && !named[cmd.CommandPath()] {
			t.Errorf("nobody looks at the JSON of %s", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk((&app{out: io.Discard, err: io.Discard}).root())
}
