package daemon

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/config"
)

// M04, M10: what of the settings remote… cannot hold is said before anybody is asked,
// with the setting's name, and no secret.
func TestOpenRemote(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask is
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	signing := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	key, open, none := write("key", "a-secret\n", 0o600), write("open", "a-secret\n", 0o644), filepath.Join(dir, "none")
	link := filepath.Join(dir, "link") // as Kubernetes mounts secrets
	if err := os.Symlink(key, link); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	const address = "https://runner.example.org"
	tests := []struct {
		name string
		r    config.Remote
		says string // empty: it opens
	}{
		{"key", config.Remote{Address: address, KeyFile: key}, ""},
		{"ticket key", config.Remote{Address: address, KeyFile: key, TicketKey: write("ticket", signing, 0o600), Name: "runner-1"}, ""},
		{"a ticket key, and no name", config.Remote{Address: address, KeyFile: key, TicketKey: write("ticket1", signing, 0o600)}, "remote_name"},
		{"a name that is none", config.Remote{Address: address, KeyFile: key, Name: "a/b\n"}, "remote_name"},
		{"loopback by http", config.Remote{Address: "http://127.0.0.1:8788", Reach: []string{"loopback"}}, ""},
		{"no address", config.Remote{KeyFile: key}, "set remote"},
		{"no key", config.Remote{Address: address}, "neither a key"},
		{"no such key", config.Remote{Address: address, KeyFile: none}, "remote_key_file"},
		{"by http", config.Remote{Address: "http://runner.example.org", KeyFile: key}, "https"},
		{"loopback without the word", config.Remote{Address: "http://127.0.0.1:8788", KeyFile: key}, "remote_reach"},
		{"half a certificate", config.Remote{Address: address, Cert: key}, "remote_cert_key"},
		{"no certificate", config.Remote{Address: address, Cert: key, CertKey: key}, "remote_cert"},
		{"no authority", config.Remote{Address: address, KeyFile: key, CA: key}, "remote_ca"},
		{"no ticket key", config.Remote{Address: address, KeyFile: key, TicketKey: key}, "remote_ticket_key"},
	}
	if runtime.GOOS != "windows" {
		tests = append(tests, []struct {
			name string
			r    config.Remote
			says string
		}{
			{"by a link", config.Remote{Address: address, KeyFile: link}, ""},
			{"a key for all to read", config.Remote{Address: address, KeyFile: open}, "others may read"},
			{"a ticket key for all to read", config.Remote{Address: address, KeyFile: key, TicketKey: write("ticket2", signing, 0o640)}, "others may read"},
		}...)
	}
	for _, tt := range tests {
		e, err := openRemote(tt.r)
		if err == nil {
			_ = e.Close()
		}
		if (err == nil) != (tt.says == "") || err != nil && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "a-secret")) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

// R11: where scripts run elsewhere, an entry of the allow-list is a name and never a path.
func TestElsewhere(t *testing.T) {
	for text, want := range map[string]string{"runtime:python-3.12": "python-3.12", "runtime:python-3.12:/usr/bin/python3": "", "/usr/bin/python3": "", "runtime:": "", "runtime:../x": "", "": ""} {
		in, err := elsewhere("py", text)
		if (err == nil) != (want != "") || err == nil && in != (gate.Interpreter{Name: want}) {
			t.Errorf("%q: %+v, %v", text, in, err)
		}
	}
}

// Settings of an executor that is not the one in force, and one that cannot be opened,
// keep a server from starting.
func TestRemoteIsUnsafe(t *testing.T) {
	load := func(text string) *config.Config {
		dir := t.TempDir()
		path := filepath.Join(dir, "tracon.yaml")
		if err := os.WriteFile(path, []byte("data: "+dir+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{File: path, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for text, says := range map[string]string{
		"executor: process\nremote: https://runner.example.org\n":                  "remote is set",
		"executor: process\nremote_key_file: x\n":                                  "remote_key_file is set",
		"executor: remote\n":                                                       "set remote",
		"executor: remote\nremote: http://runner.example.org\n":                    "https",
		"executor: remote\nremote: http://127.0.0.1:1\nremote_reach: [loopback]\n": "",
	} {
		u := &UnsafeError{}
		checkRemote(u, load(text), time.Now())
		got := strings.Join(u.Problems, "\n")
		if (got == "") != (says == "") || !strings.Contains(got, says) {
			t.Errorf("%q: %q, want %q", text, got, says)
		}
	}
}
