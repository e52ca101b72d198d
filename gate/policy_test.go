package gate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/gatecase"
)

func environment(n, size int) map[string]string {
	env := map[string]string{}
	for i := range n {
		env[fmt.Sprintf("V%02d", i)] = strings.Repeat("x", size)
	}
	return env
}

func TestPolicyValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy gate.Policy
		ok     bool
	}{
		{"zero", gate.Policy{}, true},
		{"everything at its ceiling", gate.Policy{
			Interpreters: []string{"py", "sh", "c++", "x_1-2"}, MinTier: grant.VM, MaxArguments: 8 << 20, MaxOutput: 64 << 20, MaxInputs: 64 << 30, MaxOutputs: 64 << 30,
			MaxOutputFiles: 1 << 20, Timeout: 24 * time.Hour, Memory: 64 << 30, Processes: 1 << 20, Environment: map[string]string{"A": strings.Repeat("x", 4096)},
		}, true},
		{"no network, by name", gate.Policy{Network: gate.NoNetwork}, true},
		{"loopback", gate.Policy{Network: gate.Loopback}, true},
		{"a network that is none", gate.Policy{Network: "internet"}, false},
		{"every wall", gate.Policy{RequireWalls: gate.Walls()}, true},
		{"a wall that is none", gate.Policy{RequireWalls: []string{"memory", "moat"}}, false},
		{"a wall twice", gate.Policy{RequireWalls: []string{"memory", "memory"}}, false},
		{"arguments above", gate.Policy{MaxArguments: 8<<20 + 1}, false},
		{"arguments below", gate.Policy{MaxArguments: -1}, false},
		{"output above", gate.Policy{MaxOutput: 64<<20 + 1}, false},
		{"output below", gate.Policy{MaxOutput: -1}, false},
		{"inputs above", gate.Policy{MaxInputs: 64<<30 + 1}, false},
		{"inputs below", gate.Policy{MaxInputs: -1}, false},
		{"outputs above", gate.Policy{MaxOutputs: 64<<30 + 1}, false},
		{"outputs below", gate.Policy{MaxOutputs: -1}, false},
		{"output files above", gate.Policy{MaxOutputFiles: 1<<20 + 1}, false},
		{"output files below", gate.Policy{MaxOutputFiles: -1}, false},
		{"timeout above", gate.Policy{Timeout: 24*time.Hour + 1}, false},
		{"timeout below", gate.Policy{Timeout: -1}, false},
		{"memory above", gate.Policy{Memory: 64<<30 + 1}, false},
		{"memory below", gate.Policy{Memory: -1}, false},
		{"memory at its floor", gate.Policy{Memory: gate.FloorMemory}, true},
		{"memory in which nothing starts", gate.Policy{Memory: gate.FloorMemory - 1}, false},
		{"processes above", gate.Policy{Processes: 1<<20 + 1}, false},
		{"processes below", gate.Policy{Processes: -1}, false},
		{"a tier that is none", gate.Policy{MinTier: "PROCESS"}, false},
		{"an extension with a dot", gate.Policy{Interpreters: []string{".py"}}, false},
		{"an empty extension", gate.Policy{Interpreters: []string{""}}, false},
		{"an extension that is a path", gate.Policy{Interpreters: []string{"../py"}}, false},
		{"an extension with a line feed", gate.Policy{Interpreters: []string{"py\n"}}, false},
		{"an extension too long", gate.Policy{Interpreters: []string{strings.Repeat("x", 33)}}, false},
		{"64 variables", gate.Policy{Environment: environment(64, 1)}, true},
		{"65 variables", gate.Policy{Environment: environment(65, 1)}, false},
		// With the arguments they must fit into one execve: see MaxArgumentTotal.
		{"the environment at its ceiling", gate.Policy{Environment: environment(16, gate.CeilingEnvironmentSize/16-13)}, true},
		{"the environment above", gate.Policy{Environment: environment(16, gate.CeilingEnvironmentSize/16-12)}, false},
		{"a forbidden variable", gate.Policy{Environment: map[string]string{"A": "1", "LD_PRELOAD": "x"}}, false},
	} {
		if err := tt.policy.Validate(); (err == nil) != tt.ok || err != nil && !errors.Is(err, gate.ErrPolicy) {
			t.Errorf("%s: got %v, want ok: %t", tt.name, err, tt.ok)
		}
	}
	err := gate.Policy{MaxOutput: -1, Memory: -1, MinTier: "x"}.Validate()
	for _, want := range []string{"output", "memory", "tier"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s: an operator mends all at once", err, want)
		}
	}
}

// Case 41: a policy adds variables, and none by which a loader or an
// interpreter is steered.
func TestCheckEnvironment(t *testing.T) {
	for _, name := range []string{"REPORT_STYLE", "A", "_X", "API_BASE", "X9", "LDX", "MY_PYTHONPATH", strings.Repeat("X", 64)} {
		if err := gate.CheckEnvironment(name, "any value: ünï\n"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range strings.Fields(`LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES GCONV_PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME
		PYTHONINSPECT NODE_OPTIONS NODE_PATH NPM_CONFIG_PREFIX BASH_ENV ENV SHELLOPTS PS4 IFS CDPATH PERL5LIB PERL5OPT PERL_UNICODE RUBYOPT RUBYLIB GEM_PATH
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS CORECLR_PROFILER PHPRC PHP_INI_SCAN_DIR LUA_INIT LUA_PATH LUA_CPATH R_PROFILE
		OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES SSL_CERT_FILE CURL_CA_BUNDLE CURL_HOME REQUESTS_CA_BUNDLE GIT_SSH_COMMAND GIT_EXTERNAL_DIFF PAGER EDITOR
		VISUAL BROWSER SHELL HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY PATH HOME TMPDIR TMP TEMP LANG LC_ALL TZ TZDIR TERMINFO MALLOC_CHECK_ HOSTALIASES
		PIP_INDEX_URL UV_INDEX_URL VIRTUAL_ENV DENO_DIR KRB5_CONFIG TRACON_DATA BUNDLE_GEMFILE TCLLIBPATH COMSPEC PATHEXT`) {
		if err := gate.CheckEnvironment(name, "x"); !errors.Is(err, gate.ErrPolicy) {
			t.Errorf("%s: got %v, want ErrPolicy", name, err)
		}
	}
	for _, name := range []string{"", "path", "Path", "http_proxy", "1X", "A B", "A=B", "A\x00", "A\n", "Ä", "BASH_FUNC_x%%", strings.Repeat("X", 65)} {
		if err := gate.CheckEnvironment(name, "x"); !errors.Is(err, gate.ErrPolicy) {
			t.Errorf("%q: got %v, want ErrPolicy", name, err)
		}
	}
	for _, value := range []string{"a\x00b", "\xff", strings.Repeat("x", 4097)} {
		if err := gate.CheckEnvironment("A", value); !errors.Is(err, gate.ErrPolicy) {
			t.Errorf("value %.10q: got %v, want ErrPolicy", value, err)
		}
	}
}

func TestCheckTenant(t *testing.T) {
	for _, name := range []string{"local", "acme", "ünï", "a@b", "with blank"} {
		if err := gate.CheckTenant(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "@host", "@nobody", "@", " a", "a\n", "\xff", strings.Repeat("x", 513)} {
		if err := gate.CheckTenant(name); !errors.Is(err, grant.ErrRef) {
			t.Errorf("%q: got %v, want ErrRef", name, err)
		}
	}
}

func TestPolicyJSON(t *testing.T) {
	full := gate.Policy{
		Enabled: true, Interpreters: []string{"py"}, MinTier: grant.Sandbox, MaxArguments: 1, MaxOutput: 2, MaxInputs: 3, MaxOutputs: 4, MaxOutputFiles: 5,
		Timeout: 1500 * time.Millisecond, Memory: 6, Processes: 7, KeepArguments: true, Network: gate.Loopback, RequireWalls: []string{"memory"}, Environment: map[string]string{"A": "1"},
	}
	for _, tt := range []struct {
		name   string
		policy gate.Policy
		json   string
	}{
		{"zero", gate.Policy{}, `{"enabled":false,"interpreters":[]}`},
		{"full", full, `{"enabled":true,"interpreters":["py"],"minTier":"sandbox","maxArguments":1,"maxOutput":2,"maxInputs":3,"maxOutputs":4,"maxOutputFiles":5,` +
			`"memory":6,"processes":7,"network":"loopback","requireWalls":["memory"],"keepArguments":true,"environment":{"A":"1"},"timeoutSeconds":1.5}`},
		{"the ceiling", gate.Policy{Interpreters: []string{}, Timeout: 24 * time.Hour}, `{"enabled":false,"interpreters":[],"timeoutSeconds":86400}`},
		{"a microsecond", gate.Policy{Interpreters: []string{}, Timeout: time.Microsecond}, `{"enabled":false,"interpreters":[],"timeoutSeconds":0.000001}`},
	} {
		text, err := json.Marshal(tt.policy)
		if got := strings.Replace(string(text), "1e-06", "0.000001", 1); err != nil || got != tt.json {
			t.Errorf("%s: got %s, %v; want %s", tt.name, text, err, tt.json)
		}
		var back gate.Policy
		if err := json.Unmarshal(text, &back); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.policy.Interpreters == nil {
			tt.policy.Interpreters = []string{}
		}
		if diff := cmp.Diff(tt.policy, back); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Case 16, at this door: a policy is read strictly, or not at all.
func TestPolicyJSONIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"another case":                 `{"ENABLED":true}`,
		"a name that folds":            `{"environment":{},"interpreterſ":["py"]}`,
		"a name twice":                 `{"enabled":false,"enabled":true}`,
		"a name twice, further in":     `{"environment":{"A":"1","A":"2"}}`,
		"an unknown name":              `{"enabled":true,"x":1}`,
		"the timeout's other name":     `{"timeout":5}`,
		"a timeout that rounds away":   `{"timeoutSeconds":1e-9}`,
		"a wrong type":                 `{"enabled":"yes"}`,
		"not an object":                `[]`,
		"a fraction where there is no": `{"maxOutput":1.5}`,
	} {
		p := gate.Policy{MaxOutput: 1}
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s: %s is read as %+v", name, text, p)
		} else if p.Enabled {
			t.Errorf("%s: an error, and the policy is on", name)
		}
	}
	// A timeout that no clock holds must not come back as zero, which means the default.
	for _, text := range []string{`1e300`, `-1e300`, `1e12`, `9223372036854775807`, `-5`} {
		var p gate.Policy
		if err := json.Unmarshal([]byte(`{"timeoutSeconds":`+text+`}`), &p); err == nil && p.Validate() == nil {
			t.Errorf("timeoutSeconds of %s is read as %s", text, p.Timeout)
		}
	}
}

func FuzzPolicyJSON(f *testing.F) {
	f.Add([]byte(`{"enabled":true,"interpreters":["py"],"timeoutSeconds":1.5,"environment":{"A":"1"}}`))
	f.Add([]byte(`{"ENABLED":true}`))
	f.Add([]byte(`{"environment":{"a":"]"},"maxOutput":1e3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, back gate.Policy
		if json.Unmarshal(text, &p) != nil || p.Validate() != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s becomes %s: %v", text, again, err)
		}
		if p.Interpreters == nil {
			p.Interpreters = []string{}
		}
		if len(p.Environment) == 0 {
			p.Environment = nil
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Errorf("%s becomes %s:\n%s", text, again, diff)
		}
	})
}

// The policy in force has the documented defaults where it says nothing.
func TestPolicyInForce(t *testing.T) {
	h := gatecase.New(t)
	p, err := gate.New(h.Config).Policy(t.Context(), gatecase.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	want := gate.Policy{
		Enabled: true, Interpreters: []string{"py", "sh"}, MaxArguments: 64 << 10, MaxOutput: 256 << 10, MaxInputs: 32 << 20, MaxOutputs: 32 << 20,
		MaxOutputFiles: 256, Timeout: 30 * time.Second, Memory: 256 << 20, Processes: 64,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if (gate.Policy{}).Enabled || (gate.Host{}).Enabled {
		t.Error("zero is not closed")
	}
}

func TestHostJSON(t *testing.T) {
	h := gate.Host{Enabled: true, Interpreters: map[string]gate.Interpreter{
		"py": {Path: "/usr/bin/python3", Digest: bundle.Sum([]byte("x"))}, "js": {Name: "node-24"},
		"sh": {Path: "/bin/sh", Name: "small", Digest: bundle.Sum([]byte("x")), Image: bundle.Sum([]byte("y"))},
	}, Runtimes: map[string]bundle.Digest{"small": bundle.Sum([]byte("y"))}, Network: gate.Loopback, RequireWalls: []string{"memory", "files, second layer"}}
	text, err := json.Marshal(h)
	x, y := bundle.Sum([]byte("x")).String(), bundle.Sum([]byte("y")).String()
	want := `{"enabled":true,"interpreters":{"js":{"name":"node-24"},"py":{"path":"/usr/bin/python3","digest":"` + x + `"},` +
		`"sh":{"path":"/bin/sh","name":"small","digest":"` + x + `","image":"` + y + `"}},"runtimes":{"small":"` + y + `"},"network":"loopback","requireWalls":["memory","files, second layer"]}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	var back gate.Host
	if err := json.Unmarshal(text, &back); err != nil || !cmp.Equal(h, back) {
		t.Errorf("got %+v, %v", back, err)
	}
}

// What cannot hold for the host is told: a name that no runtime has, one without
// a digest, a network that is none.
func TestHostValidate(t *testing.T) {
	root := bundle.Sum([]byte("root"))
	for _, tt := range []struct {
		name string
		host gate.Host
		ok   bool
	}{
		{"zero", gate.Host{}, true},
		{"runtimes", gate.Host{Runtimes: map[string]bundle.Digest{"python-3.12": root, "a": root, strings.Repeat("x", 64): root}}, true},
		{"loopback", gate.Host{Network: gate.Loopback}, true},
		{"walls", gate.Host{RequireWalls: gate.Walls()}, true},
		{"a wall that is none", gate.Host{RequireWalls: []string{""}}, false},
		{"a network that is none", gate.Host{Network: "egress"}, false},
		{"an extension with a dot", gate.Host{Interpreters: map[string]gate.Interpreter{".py": {}}}, false},
		{"a runtime without a digest", gate.Host{Runtimes: map[string]bundle.Digest{"a": {}}}, false},
		{"a runtime without a name", gate.Host{Runtimes: map[string]bundle.Digest{"": root}}, false},
		{"a name in upper case", gate.Host{Runtimes: map[string]bundle.Digest{"Python": root}}, false},
		{"a name that is a path", gate.Host{Runtimes: map[string]bundle.Digest{"a/b": root}}, false},
		{"a name with a colon", gate.Host{Runtimes: map[string]bundle.Digest{"a:b": root}}, false},
		{"a hidden name", gate.Host{Runtimes: map[string]bundle.Digest{".a": root}}, false},
		{"a long name", gate.Host{Runtimes: map[string]bundle.Digest{strings.Repeat("x", 65): root}}, false},
	} {
		if err := tt.host.Validate(); (err == nil) != tt.ok || err != nil && !errors.Is(err, gate.ErrPolicy) {
			t.Errorf("%s: got %v, want ok: %t", tt.name, err, tt.ok)
		}
	}
}

// A run has the network that host and tenant both allow, and no other: zero is none.
func TestNetworkNarrows(t *testing.T) {
	for _, tt := range []struct{ host, tenant, want gate.Network }{
		{"", "", gate.NoNetwork},
		{gate.Loopback, "", gate.NoNetwork},
		{gate.Loopback, gate.NoNetwork, gate.NoNetwork},
		{"", gate.Loopback, gate.NoNetwork},
		{gate.NoNetwork, gate.Loopback, gate.NoNetwork},
		{gate.Loopback, gate.Loopback, gate.Loopback},
	} {
		h := gatecase.New(t)
		h.Host(t, func(h *gate.Host) { h.Network = tt.host })
		h.Policy(t, func(p *gate.Policy) { p.Network = tt.tenant })
		req, err := gate.New(h.Config).Admit(t.Context(), h.Call, h.Standing)
		if err != nil {
			t.Fatal(err)
		}
		if got := req.Network(); got != tt.want {
			t.Errorf("host %q, tenant %q: %q, want %q", tt.host, tt.tenant, got, tt.want)
		}
		if got := entries(t, h, audit.Admission)[0].Fact("network"); got != string(tt.want) {
			t.Errorf("host %q, tenant %q: the log has %q", tt.host, tt.tenant, got)
		}
	}
}
