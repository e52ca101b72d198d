package cli

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/daemon"
)

// Where a verb does its work, once the server or the socket is there.
const (
	asked  = "asked"  // the server is asked
	folder = "folder" // the data folder of this machine, or this machine itself, beside a server
)

// places are the verbs: with --server they ask it, or say these words and ask nobody;
// where a server holds the data folder, they ask it through its socket or look at the
// folder themselves. On local data every one of them works: nothing is asked then.
var places = []struct {
	words  string
	server string // asked, or what the refusal says
	socket string // asked or folder
}{
	{"run known s.py", asked, asked},
	{"run --grant ./s s.py", "--grant is for the data folder", folder},
	{"explain known s.py", asked, asked},
	{"grant review known s.py", asked, asked},
	{"grant add known s.py --digest sha256:" + strings.Repeat("7", 64), asked, asked},
	{"grant list", asked, asked},
	{"grant revoke 01900000-0000-7000-8000-000000000000", asked, asked},
	{"grant diff known s.py", asked, asked},
	{"run ./s s.py", "is a folder of this machine", folder},
	{"grant diff ./s s.py", "is a folder of this machine", folder},
	{"skill list", asked, asked},
	{"skill show known", asked, asked},
	{"skill import ./s", asked, asked},
	{"skill history known", asked, asked},
	{"skill diff known ./s", asked, asked},
	{"skill export known out", asked, asked},
	{"skill delete known", asked, asked},
	{"skill lint known", asked, asked},
	{"skill lint ./s", "is a folder of this machine", folder},
	{"skill init made", "works on this machine alone", folder},
	{"skill schema", "works on this machine alone", folder},
	{"policy show", asked, asked},
	{"policy set --enabled", asked, asked},
	{"runtime list", asked, asked},
	{"runtime import x rootfs.tar", asked, asked},
	{"runtime import x rootfs.tar --platform linux/amd64", "--platform and --image are for the data folder", folder},
	{"runtime pull x 127.0.0.1:1/x:1", asked, asked},
	{"runtime pull x 127.0.0.1:1/x:1 --max-size 1GiB", "--max-… is for the data folder", folder},
	{"runtime show x", asked, asked},
	{"runtime remove x", asked, asked},
	{"key create ci --role reader", asked, asked},
	{"key list", asked, asked},
	{"key show aaaaaaaaaaaaaaaa", asked, asked},
	{"key rotate aaaaaaaaaaaaaaaa", asked, asked},
	{"key revoke aaaaaaaaaaaaaaaa", asked, asked},
	{"microvm prepare", "works on this machine alone", folder},
	{"microvm show", "works on this machine alone", folder},
	{"tenant create acme", asked, asked},
	{"tenant list", asked, asked},
	{"tenant show acme", asked, asked},
	{"tenant set acme --off", asked, asked},
	{"tenant delete acme --yes", asked, asked},
	{"audit list", asked, asked},
	{"audit list --all-tenants", asked, asked},
	{"audit list --actor me", "--actor is for the data folder", folder},
	{"audit verify", asked, folder},
	{"audit verify --alone", "for a data folder of this machine", folder},
	{"audit prove 0", asked, asked},
	{"audit receipt check receipt", asked, folder},
	{"audit checkpoint", asked, asked},
	{"audit export", asked, asked},
	{"audit history log.jsonl", "works on this machine alone", folder},
	{"audit rotate-key", asked, asked},
	{"audit accept-loss --reason x", "works on this machine alone", folder},
	{"witness serve", "works on this machine alone", folder},
	{"calls list", asked, asked},
	{"calls show 01900000-0000-7000-8000-000000000000", asked, asked},
	{"calls usage", asked, asked},
	{"fsck", asked, folder},
	{"retention show", asked, asked},
	{"retention preview", asked, asked},
	{"retention apply", asked, asked},
	{"runner serve", "works on this machine alone", folder},
	{"runner key create ci --tenants acme", "works on this machine alone", folder},
	{"runner key list", "works on this machine alone", folder},
	{"runner key revoke aaaaaaaaaaaaaaaa", "works on this machine alone", folder},
	{"runner list", "works on this machine alone", folder},
	{"runner drain x", "works on this machine alone", folder},
	{"runner join-key x", "works on this machine alone", folder},
	{"serve", "works on this machine alone", folder},
	{"mcp", "works on this machine alone", folder},
	{"doctor", asked, folder},
	{"conformance executor", "works on this machine alone", folder},
	{"conformance hostile --list", "works on this machine alone", folder},
	{"conformance runner http://127.0.0.1:1", "works on this machine alone", folder},
	{"config print", "works on this machine alone", folder},
	{"version", "works on this machine alone", folder},
	{"man man", "works on this machine alone", folder},
}

// Each verb is asked in three places (local data, --server, the socket of a server that
// holds the data folder), and does there what the table says. One that is new needs a
// row: nobody should find out by surprise whose data a verb reads.
func TestEveryVerbHasItsPlaces(t *testing.T) {
	var reached atomic.Int64
	refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/version" {
			_, _ = io.WriteString(w, `{"version":"test","api":"`+apiVersion+`"}`)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"code":"forbidden","status":403,"title":"x","detail":"access: not allowed: it takes nothing that there is"}`)
	})
	server := httptest.NewServer(refuses)
	defer server.Close()

	dir := t.TempDir()
	t.Chdir(dir)
	data, err := os.MkdirTemp("", "d") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	l, err := net.Listen("unix", filepath.Join(data, daemon.SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	socket := &http.Server{Handler: refuses}
	over := make(chan struct{})
	go func() { defer close(over); _ = socket.Serve(l) }()
	defer func() { _ = socket.Close(); <-over }()
	for name, text := range map[string]string{"receipt": "none", "rootfs.tar": "none", "s/SKILL.md": "---\nname: s\ndescription: A skill.\n---\n", "s/s.py": "print(1)\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	// ask says the words, and returns whether anybody was asked, and what a user reads.
	ask := func(t *testing.T, words, data, to string) (bool, string) {
		t.Helper()
		before := reached.Load()
		env := map[string]string{"TRACON_DATA": data, "TRACON_STATE": filepath.Join(dir, "state"), "HOME": dir, "TRACON_EXECUTOR": "process", "TRACON_KEY": "tracon_x"}
		var errs bytes.Buffer
		a := &app{in: strings.NewReader(""), out: io.Discard, err: &errs, dir: dir, getenv: func(k string) string { return env[k] }}
		args := strings.Fields(words)
		if to != "" {
			args = append(args, "--server", to)
		}
		a.main(t.Context(), args)
		return reached.Load() > before, errs.String()
	}
	named := map[string]bool{}
	for _, tt := range places {
		found, _, err := new(app).root().Find(strings.Fields(tt.words))
		if err != nil {
			t.Fatal(err)
		}
		named[found.CommandPath()] = true
		t.Run(tt.words, func(t *testing.T) {
			was, told := ask(t, tt.words, data, server.URL)
			if tt.server == asked && !was {
				t.Errorf("with --server nobody is asked: %s", told)
			}
			if tt.server != asked && (was || !strings.Contains(told, tt.server)) {
				t.Errorf("with --server it asks (%v), or says something else than %q: %s", was, tt.server, told)
			}
			if endless[found.Name()] {
				return
			}
			if was, told := ask(t, tt.words, data, ""); was != (tt.socket == asked) {
				t.Errorf("beside a server its socket is asked: %v, want %s: %s", was, tt.socket, told)
			}
			was, told = ask(t, tt.words, filepath.Join(dir, "alone"), "")
			if was || strings.Contains(told, "--server") {
				t.Errorf("on local data somebody is asked (%v): %s", was, told)
			}
		})
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return // the shell's, and for people
		}
		if !cmd.HasSubCommands() && !named[cmd.CommandPath()] {
			t.Errorf("%s has no row that says where it works", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(new(app).root())
}

// endless are the verbs that serve, and end when they are told to: that they begin on this
// machine is in the scripts of the real binary.
var endless = map[string]bool{"serve": true, "mcp": true, "executor": true}
