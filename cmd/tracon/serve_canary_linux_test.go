package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// A resident is a tenant whose every text is a canary, by what it is.
type resident struct {
	s       *served
	canary  map[string]string
	key     client.MadeKey
	digest  bundle.Digest
	run     string
	values  map[string]string // of the API's parameters, by their names
	session *model
	seen    strings.Builder // all that it was answered
}

// shown are the canaries that a tenant's own admin reads somewhere.
var shown = []string{"skill", "script", "description", "text", "reference", "body", "source", "import-reason", "grant-reason", "key", "argument", "stdout", "stderr", "file", "data"}

// private are those that nobody but the tenant's people is shown: no log, span or metric has
// them. The other names stand there.
var private = []string{"description", "text", "reference", "body", "source", "import-reason", "grant-reason", "argument", "stdout", "stderr", "file", "data", "env"}

// resident makes a tenant, its key, its skill with a grant, and a run of it.
func (s *served) resident(name string) *resident {
	t := s.t
	t.Helper()
	a := &resident{s: s, canary: map[string]string{}}
	for _, kind := range append([]string{"env"}, shown...) {
		a.canary[kind] = "kanari-" + name + "-" + kind
	}
	a.canary["script"] += ".sh"
	ctx, admin, yes := t.Context(), s.as(name), true
	if _, err := s.as("").CreateTenant(ctx, client.NewTenant{Name: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ChangePolicy(ctx, "*", client.PolicyChange{Enabled: &yes, Interpreters: &[]string{"sh"}, KeepArguments: &yes,
		SetEnvironment: map[string]string{"TOKEN": a.canary["env"]}}); err != nil {
		t.Fatal(err)
	}
	text := "# " + a.canary["text"] + "\necho " + a.canary["stdout"] + "; echo " + a.canary["stderr"] + " >&2\nif test -n \"$2\"; then cat \"$2\"; fi\necho " +
		a.canary["data"] + " > outputs/" + a.canary["file"] + "\n"
	imported, err := admin.ImportFiles(ctx, client.FilesImport{Source: a.canary["source"], Reason: a.canary["import-reason"], Files: []client.Upload{
		{Path: "SKILL.md", Data: []byte("---\nname: " + a.canary["skill"] + "\ndescription: " + a.canary["description"] + "\n---\nRun it.\n")},
		{Path: a.canary["script"], Data: []byte(text)},
		{Path: a.canary["reference"], Data: []byte(a.canary["body"])},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.digest = imported.Version.Digest
	g, err := admin.CreateGrant(ctx, client.NewGrant{Skill: a.canary["skill"], Script: a.canary["script"], Digest: imported.Version.Digest, MinTier: "process", Reason: a.canary["grant-reason"]})
	if err != nil {
		t.Fatal(err)
	}
	if a.key, err = admin.CreateKey(ctx, "", client.NewKey{Name: a.canary["key"], Roles: []string{"admin", "approver", "operator"}}); err != nil {
		t.Fatal(err)
	}
	a.run = a.start()
	list, err := admin.Entries(ctx, client.EntryFilter{}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	a.values = map[string]string{"skill": a.canary["skill"], "script": a.canary["script"], "path": a.canary["reference"], "version": imported.Version.ID, "old": imported.Version.ID,
		"grant": g.ID, "run": a.run, "call": a.run, "before": a.run, "key": a.key.Key.ID, "tenant": name, "index": strconv.FormatUint(list.Items[len(list.Items)-1].Index, 10), "runtime": "none", "content": "true", "leaf": "true"}
	a.session = s.model(a.key.Secret)
	return a
}

// start runs the script to its end and returns the call's id.
func (a *resident) start(more ...string) string {
	a.s.t.Helper()
	run, err := a.s.with(a.key.Secret).StartRun(a.s.t.Context(), client.NewRun{Skill: a.canary["skill"], Script: a.canary["script"], Arguments: a.arguments(more...)},
		client.RunOptions{Detach: true, Wait: -1})
	if err != nil || run.ExitCode == nil || *run.ExitCode != 0 {
		a.s.t.Fatalf("%+v, %v", run, err)
	}
	return run.ID
}

func (a *resident) arguments(more ...string) json.RawMessage {
	text, err := json.Marshal(append([]string{a.canary["argument"]}, more...))
	if err != nil {
		a.s.t.Fatal(err)
	}
	return text
}

// asks sends a request with the tenant's key, keeps all of the answer, and returns its
// status.
func (a *resident) asks(method, path string, query url.Values, body any) int {
	t := a.s.t
	t.Helper()
	var sent []byte
	if method != http.MethodGet {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, a.s.Address+path+"?"+query.Encode(), bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.key.Secret)
	r.Header.Set("Baggage", "user=kanari-baggage")
	if sent != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("If-Match", "*")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	a.keep(method+" "+path+query.Encode()+string(sent), answer)
	return answer.StatusCode
}

// get returns an answer that is still to be read.
func (a *resident) get(path string) *http.Response {
	t := a.s.t
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.s.Address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.key.Secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// keep keeps the answer to what was asked.
func (a *resident) keep(asked string, answer *http.Response) {
	a.s.t.Helper()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		a.s.t.Fatal(err)
	}
	a.keepText(asked, fmt.Sprintf("%v %s", answer.Header, text))
}

// keepText leaves out the canaries that the question itself names: they are no news.
func (a *resident) keepText(asked, text string) {
	for _, named := range aCanary.FindAllString(asked, -1) {
		text = strings.ReplaceAll(text, named, "…")
	}
	a.seen.WriteString(text + "\n")
}

var aCanary = regexp.MustCompile(`kanari-[a-z.-]+`)

// says has the tenant's model ask, and keeps what it was answered.
func (a *resident) says(method string, params map[string]any) {
	asked, err := json.Marshal(params)
	if err != nil {
		a.s.t.Fatal(err)
	}
	_, answer := a.session.ask(method, params)
	text, err := json.Marshal(answer)
	if err != nil {
		a.s.t.Fatal(err)
	}
	a.keepText(string(asked), string(text))
}

// walk asks each operation of the API's document, and what a model may ask, for what is
// of's: the whole of what changes something only where that is somebody else.
func (a *resident) walk(document map[string]map[string]operation, of *resident) {
	t := a.s.t
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(document)) {
		foreign := a != of && strings.Contains(path, "{") && !strings.Contains(path, "{runtime}")
		filled := path
		for name, value := range of.values {
			filled = strings.ReplaceAll(filled, "{"+name+"}", url.PathEscape(value))
		}
		for _, method := range slices.Sorted(maps.Keys(document[path])) {
			if method != "get" && a == of {
				continue
			}
			required, all := url.Values{}, url.Values{}
			for _, p := range document[path][method].Parameters {
				value, has := of.values[p.Name]
				if p.Name == "path" && strings.HasSuffix(path, "/output") {
					value = "outputs/" + of.canary["file"]
				}
				if p.In != "query" || !has {
					continue
				}
				if all.Set(p.Name, value); p.Required {
					required.Set(p.Name, value)
				}
			}
			for _, query := range []url.Values{required, all} {
				status := a.asks(strings.ToUpper(method), filled, query, map[string]any{"skill": of.canary["skill"], "script": of.canary["script"]})
				if foreign && status < 400 {
					t.Errorf("%s %s of another tenant: %d", method, path, status)
				}
			}
		}
	}
	skill, script := of.canary["skill"], of.canary["script"]
	a.says("tools/list", nil)
	a.says("resources/list", nil)
	for _, path := range []string{"SKILL.md", script, of.canary["reference"]} {
		a.says("resources/read", map[string]any{"uri": "skill://" + skill + "/" + path})
		a.says("tools/call", map[string]any{"name": "read_skill_resource", "arguments": map[string]any{"skill": skill, "path": path}})
	}
	a.says("tools/call", map[string]any{"name": "list_skills", "arguments": map[string]any{}})
	a.says("tools/call", map[string]any{"name": "load_skill", "arguments": map[string]any{"skill": skill}})
	a.says("tools/call", map[string]any{"name": "run_skill_script", "arguments": map[string]any{"skill": skill, "script": script, "arguments": []string{a.canary["argument"]}}})
}

type operation struct {
	Parameters []struct {
		Name, In string
		Required bool
	}
}

// has tells whether the text holds the canary, in base64 too: there by the characters that
// it alone decides, wherever it begins.
func has(text, canary string) bool {
	for before := range 3 {
		packed := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", before) + canary))
		if strings.Contains(text, packed[(before*4+2)/3:(before+len(canary))*4/3]) {
			return true
		}
	}
	return strings.Contains(text, canary)
}

// T07, T01 to T03, T09, T14: of another tenant nothing is in any answer of the API or of the
// endpoint for models, by whatever name, id or digest it is asked for; no value of a
// variable is in anybody's; and what tenants write is in no log, on no span and on no
// metric. That each canary is found by its own tenant shows that the search can find it.
func TestServeCanaries(t *testing.T) {
	var mu sync.Mutex
	var spans strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&spans, io.LimitReader(r.Body, 4<<20))
	}))
	defer collector.Close()
	s := newServed(t, map[string]string{"TRACON_TRACES": collector.URL + "/v1/traces", "TRACON_RATE_KEY": "1000000", "TRACON_RATE_TENANT": "1000000", "TRACON_RATE_RUNS": "1000000"}).start()
	yes := true
	if _, err := s.as("").ChangeHost(t.Context(), "*", client.HostChange{Enabled: &yes, Interpreters: map[string]string{"sh": "/bin/sh"}}); err != nil {
		t.Fatal(err)
	}
	a, b := s.resident("alfa"), s.resident("bravo")

	// A follows a run of its own while B runs.
	pipe := filepath.Join(s.folder, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := s.with(a.key.Secret).StartRun(t.Context(), client.NewRun{Skill: a.canary["skill"], Script: a.canary["script"], Arguments: a.arguments(pipe)}, client.RunOptions{Detach: true})
	if err != nil {
		t.Fatal(err)
	}
	stream := a.get("/v1/runs/" + held.ID + "/events")
	defer stream.Body.Close()
	b.start()
	eventually(t, "the script reads the pipe", func() bool {
		fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err == nil
	})
	a.keep("the events", stream)

	var document struct {
		Paths map[string]map[string]operation
	}
	answer := a.get("/openapi.json")
	err = json.NewDecoder(answer.Body).Decode(&document)
	_ = answer.Body.Close()
	if err != nil || len(document.Paths) < 40 {
		t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	for _, who := range []*resident{a, b} {
		who.walk(document.Paths, who)
		for _, kind := range shown {
			if !has(who.seen.String(), who.canary[kind]) {
				t.Errorf("no answer has %s: nothing is shown by the search for it", who.canary[kind])
			}
		}
	}
	a.walk(document.Paths, b)
	own := url.PathEscape(a.canary["skill"])
	for _, version := range []string{b.values["version"], b.digest.String()} {
		for _, path := range []string{"", "/export", "/diff"} {
			query := url.Values{"version": {version}}
			if path == "/diff" {
				query = url.Values{"old": {version}}
			}
			if status := a.asks(http.MethodGet, "/v1/skills/"+own+path, query, nil); status < 400 {
				t.Errorf("%s of the version %s of another tenant: %d", path, version, status)
			}
		}
	}
	for _, skill := range []string{a.canary["skill"], b.canary["skill"]} {
		if status := a.asks(http.MethodPost, "/v1/grants", nil, client.NewGrant{Skill: skill, AllScripts: true, Digest: b.digest, MinTier: "process"}); status < 400 {
			t.Errorf("%s is granted by the digest of another tenant's content: %d", skill, status)
		}
	}
	a.asks(http.MethodGet, "/metrics", nil, nil)
	for kind, canary := range b.canary {
		if has(a.seen.String(), canary) {
			t.Errorf("another tenant is told the %s", kind)
		}
	}
	for _, who := range []*resident{a, b} {
		for what, secret := range map[string]string{"a value of a variable": who.canary["env"], "a key": who.key.Secret} {
			if has(a.seen.String()+b.seen.String(), secret) {
				t.Errorf("an answer has %s", what)
			}
		}
	}
	b.start() // and nothing of it was changed

	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.Socket)
	}}}
	answer, err = socket.Get("http://tracon/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	s.signal(syscall.SIGTERM)
	if code := s.wait(); err != nil || code != 0 {
		t.Errorf("%v, exit code %d", err, code)
	}
	mu.Lock()
	defer mu.Unlock()
	told := map[string]string{"the log": strings.Join(s.lines(), "\n"), "the metrics": string(metrics), "the spans": spans.String()}
	for where, want := range map[string]string{"the log": "alfa", "the metrics": "tracon_runs_total", "the spans": a.canary["script"]} {
		if !strings.Contains(told[where], want) {
			t.Errorf("%s: no %q", where, want)
		}
	}
	for where, text := range told {
		for _, who := range []*resident{a, b} {
			for _, kind := range private {
				if has(text, who.canary[kind]) {
					t.Errorf("%s: the %s of a tenant", where, kind)
				}
			}
			if has(text, who.key.Secret) || strings.Contains(text, "kanari-baggage") {
				t.Errorf("%s: a key, or what a client has a trace carry", where)
			}
		}
	}
}
