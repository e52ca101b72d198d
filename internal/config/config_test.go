package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, file string, env map[string]string, flags map[string]string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	src := Source{Dir: dir, Flags: flags, Getenv: func(name string) string {
		if name == "HOME" {
			return filepath.Join(dir, "home")
		}
		return env[name]
	}}
	if file != "" {
		src.File = filepath.Join(dir, "tracon.yaml")
		if err := os.WriteFile(src.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(src)
}

// Each value overrides the one before and knows where it came from.
func TestOrigins(t *testing.T) {
	c, err := load(t, "slots: 4\nqueue: 10\n\nslot_wait: 10s\ninterpreters:\n  py: /usr/bin/python3\nskills: [a, /b]\nmax_file: 1MiB\ndisk_rate: 50MiB\n",
		map[string]string{"TRACON_QUEUE": "20", "TRACON_GRACE": "1s"}, map[string]string{"data": "d"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Slots != 4 || c.Queue != 20 || c.SlotWait != 10*time.Second || c.Grace != time.Second || c.Content.FileBytes != 1<<20 || c.DiskRate != 50<<20 {
		t.Errorf("got %+v", c)
	}
	if c.Interpreters["py"] != "/usr/bin/python3" || len(c.Skills) != 2 || !filepath.IsAbs(c.Skills[0]) || c.Skills[1] != "/b" {
		t.Errorf("interpreters %v, skills %v", c.Interpreters, c.Skills)
	}
	if !filepath.IsAbs(c.Data) || filepath.Base(c.Data) != "d" {
		t.Errorf("data = %q, want d made absolute", c.Data)
	}
	want := map[string]string{"slots": ":1", "queue": "variable TRACON_QUEUE", "slot_wait": ":4", "grace": "variable TRACON_GRACE",
		"data": "flag --data", "enabled": "default", "interpreters": ":5"}
	for _, v := range c.Values() {
		if w, ok := want[v.Key]; ok && !strings.HasSuffix(v.Origin, w) {
			t.Errorf("%s comes from %q, want %q", v.Key, v.Origin, w)
		}
	}
}

// Zero is closed: with nothing set, the host is off and lists no interpreter.
func TestDefaultIsClosed(t *testing.T) {
	c, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Enabled || len(c.Interpreters) != 0 || c.TrustClaimed || c.File != "" {
		t.Errorf("got %+v, want off and empty", c)
	}
}

// Bad input names the thing, the place and the remedy.
func TestMistakes(t *testing.T) {
	tests := []struct {
		name, file string
		env        map[string]string
		want       []string
	}{
		{"unknown key", "slots: 1\nslot: 2\n", nil, []string{":2:", `"slot"`, "config print"}},
		{"given twice", "slots: 1\nslots: 2\n", nil, []string{"slots", "twice"}},
		{"not a number", "slots: many\n", nil, []string{":1", "slots", "many"}},
		{"negative", "slots: -1\n", nil, []string{"slots"}},
		{"not a duration", "grace: 5\n", nil, []string{"grace", "30s"}},
		{"not a size", "max_file: 8MB\n", nil, []string{"max_file", "256KiB"}},
		{"size overflows", "max_file: 9999999999999GiB\n", nil, []string{"max_file"}},
		{"relative interpreter in a runtime", "interpreters: {py: 'runtime:small:bin/python3'}\n", nil, []string{"py", "absolute"}},
		{"interpreter above a runtime", "interpreters: {py: 'runtime:small:/../bin/python3'}\n", nil, []string{"py", "absolute"}},
		{"no name of a runtime", "interpreters: {py: 'runtime:'}\n", nil, []string{"interpreters", "python-3.12"}},
		{"a runtime's name in upper case", "interpreters: {py: 'runtime:Small'}\n", nil, []string{"interpreters", "lower case"}},
		{"a wall that is none", "require_walls: [memory, moat]\n", nil, []string{"require_walls", "moat", "processor time"}},
		{"no network", "network: internet\n", nil, []string{"network", "internet", "loopback"}},
		{"relative interpreter", "interpreters: {py: python3}\n", nil, []string{"py", "absolute"}},
		{"extension with a dot", "interpreters: {.py: /usr/bin/python3}\n", nil, []string{"without the dot"}},
		{"list for a map", "interpreters: [py]\n", nil, []string{"write a map"}},
		{"text for a list", "skills: a\n", nil, []string{"write a list"}},
		{"not a map", "- a\n", nil, []string{"key: value"}},
		{"not YAML", "slots: [\n", nil, []string{"line"}},
		{"unknown executor", "executor: docker\n", nil, []string{"docker", "process"}},
		{"switch that is neither", "enabled: yes please\n", nil, []string{"neither true nor false"}},
		{"an address without a host", "listen: :8787\n", nil, []string{"listen", "127.0.0.1:8787"}},
		{"an address without a port", "listen: localhost\n", nil, []string{"listen", "127.0.0.1:8787"}},
		{"an address with too high a port", "metrics_listen: 127.0.0.1:65536\n", nil, []string{"metrics_listen", "65535"}},
		{"an address of IPv6 without brackets", "listen: '::1:8787'\n", nil, []string{"listen", "127.0.0.1:8787"}},
		{"a share above 1", "traces_share: 1.5\n", nil, []string{"traces_share", "0.1"}},
		{"a share that is no number", "traces_share: NaN\n", nil, []string{"traces_share"}},
		{"a role that is none", "oidc_roles: {staff: boss}\n", nil, []string{"oidc_roles", "operator"}},
		{"variable", "", map[string]string{"TRACON_SLOTS": "x"}, []string{"variable TRACON_SLOTS", "slots"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file, tt.env, nil)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not hold %q", err, w)
				}
			}
		})
	}
	t.Run("a named file that is not there", func(t *testing.T) {
		if _, err := Load(Source{File: "/nonexistent/tracon.yaml"}); err == nil || !strings.Contains(err.Error(), "/nonexistent/tracon.yaml") {
			t.Errorf("err = %v, want one that names the file", err)
		}
	})
}

// Every setting prints what it reads, so that a printed value can be set again.
func TestValuesReadBack(t *testing.T) {
	c, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Values()
	for i, s := range Settings {
		if before[i].Value == "" {
			continue
		}
		if err := s.set(c, before[i].Value, ""); err != nil {
			t.Errorf("%s: %v", s.Key, err)
		}
	}
	if after := c.Values(); !slices.Equal(before, after) {
		t.Errorf("got %v, want %v", after, before)
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"0", "1KiB", "8 MiB", "-1", "1TiB", "9223372036854775807", "KiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			return
		}
		if back, err := ParseSize(FormatSize(n)); n < 0 || err != nil || back != n {
			t.Errorf("%q = %d, written as %q, read back as %d, %v", s, n, FormatSize(n), back, err)
		}
	})
}

// A runner that reads its file again takes all of it but what holds from the start to the
// end of a process, which is named, be it anything at all.
func TestRunnerReload(t *testing.T) {
	const before = "enabled: true\nruntimes: {sh: /bin/sh}\ndrain: 1m\n"
	started, err := load(t, before, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "enabled: false\nruntimes: {bash: /bin/bash}\ndrain: 2m\nrunner_name: another\nrunner_listen: 127.0.0.1:1\nrunner_max_timeout: 5m\nrate_key: 7\nslots: 9\nfleet_lost: 4s\nmetrics_listen: 127.0.0.1:2\ntls_cert: /c\ntls_key: /k\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, kept := c.RunnerReload(started)
	slices.Sort(kept)
	if want := []string{"data", "metrics_listen", "runner_listen", "runner_name", "slots", "state", "tls_cert", "tls_key"}; !slices.Equal(kept, want) {
		t.Errorf("%q is kept, want %q", kept, want)
	}
	if n.Enabled || n.Runner.Runtimes["bash"] == "" || n.Runner.MaxTimeout != 5*time.Minute || n.Serve.Drain != 2*time.Minute || n.Serve.KeyRate != 7 || n.Fleet.Lost != 4*time.Second {
		t.Errorf("what can change does not: %+v", n)
	}
	if n.Runner.Name != started.Runner.Name || n.Runner.Listen != started.Runner.Listen || n.Slots != started.Slots || n.Serve.TLSCert != "" {
		t.Errorf("what holds from the start on has changed: %+v", n)
	}
	if !started.Enabled || started.Runner.Runtimes["bash"] != "" {
		t.Error("what was started has changed")
	}
}
