package toolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/toolcase"
	"github.com/tracon-go/tracon/schema"
	"github.com/tracon-go/tracon/toolset"
)

func names(t *testing.T, h *toolcase.House, tenant string) []string {
	t.Helper()
	tools, err := h.Tools.For(tenant, "model").Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, tool := range tools {
		list = append(list, tool.Name)
	}
	return list
}

// Case 58: no script is granted to the tenant, and the run tool isn't offered; it is
// as soon as one is, to that tenant alone, and no longer when the switch is off.
func TestToolsAreShownWhereTheyServe(t *testing.T) {
	h := toolcase.Open(t, nil)
	reading := []string{toolset.ListSkills, toolset.LoadSkill, toolset.ReadSkillResource}
	if got := names(t, h, "acme"); !slices.Equal(got, reading) {
		t.Errorf("without a grant there is %q", got)
	}
	h.Grant("acme", "scripts/shout.sh")
	if got := names(t, h, "acme"); !slices.Equal(got, append(reading, toolset.RunSkillScript)) {
		t.Errorf("with a grant there is %q", got)
	}
	if got := names(t, h, "other"); !slices.Equal(got, reading) {
		t.Errorf("another tenant has %q", got)
	}
	grants, err := h.Desk.Grants(t.Context(), "acme", grant.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Desk.Revoke(t.Context(), "operator", "acme", grants[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	if got := names(t, h, "acme"); !slices.Equal(got, reading) {
		t.Errorf("with a revoked grant there is %q", got)
	}
}

// A tenant without any skill has no tool.
func TestNoSkills(t *testing.T) {
	exec := failing{errors.New("is never called")}
	h := toolcase.Over(t, t.TempDir(), exec, nil)
	if got := names(t, h, "acme"); len(got) != 0 {
		t.Errorf("there is %q", got)
	}
}

// Case 60: every property typed with one type, no unknown members, every list with
// items, every required name a property; and the schemas are ones that can be compiled.
func TestSchemasAreStrict(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	tools, err := h.Tools.For("acme", "model").Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		for kind, text := range map[string]json.RawMessage{"input": tool.Input, "output": tool.Output} {
			var s map[string]any
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			strict(t, tool.Name+" "+kind, s)
			if err := schema.New(schema.Options{}).Compile(text); err != nil {
				t.Errorf("%s %s: %v", tool.Name, kind, err)
			}
		}
	}
}

func strict(t *testing.T, at string, s map[string]any) {
	t.Helper()
	if list, ok := s["type"].([]any); ok && len(list) == 2 && list[1] == "null" && strings.Contains(at, " output") {
		s["type"] = list[0]
	}
	kind, ok := s["type"].(string)
	if !ok {
		t.Errorf("%s has the type %v, and needs one", at, s["type"])
	}
	switch kind {
	case "object":
		if s["additionalProperties"] != false {
			t.Errorf("%s takes unknown members", at)
		}
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			t.Errorf("%s has no properties", at)
		}
		for name, p := range properties {
			strict(t, at+"."+name, p.(map[string]any))
		}
		required, ok := s["required"].([]any)
		if !ok {
			t.Errorf("%s does not say what is required", at)
		}
		for _, name := range required {
			if _, ok := properties[name.(string)]; !ok {
				t.Errorf("%s requires %v, which it has not", at, name)
			}
		}
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			t.Fatalf("%s has no items", at)
		}
		strict(t, at+"[]", items)
	}
}

// The names stand in the schema where there are few, so that a model can use no other.
func TestNamesAreEnums(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "scripts/shout.sh")
	tools, err := h.Tools.For("acme", "model").Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[int][]string{1: {`"enum":["shout","tales"]`}, 3: {`"enum":["shout"]`, `"enum":["scripts/shout.sh"]`}} {
		for _, w := range want {
			if !strings.Contains(string(tools[tool].Input), w) {
				t.Errorf("%s has no %s: %s", tools[tool].Name, w, tools[tool].Input)
			}
		}
	}
}

// Every answer, good or bad, is one that the tool's output schema allows.
func TestAnswersFitTheirSchema(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	tools, err := h.Tools.For("acme", "model").Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		tool      int
		arguments any
		failed    bool
	}{
		{0, object{}, false}, {0, object{"x": 1}, true},
		{1, object{"skill": "shout"}, false}, {1, object{"skill": "nope"}, true}, {1, object{"SKILL": "shout"}, true},
		{2, object{"skill": "shout", "path": "SKILL.md"}, false}, {2, object{"skill": "shout", "path": "data.bin"}, false},
		{2, object{"skill": "shout", "path": "../SKILL.md"}, true}, {2, object{"skill": "shout", "path": "SKILL.md", "offset": -1}, true},
		{3, object{"skill": "shout", "script": "scripts/shout.sh", "arguments": []string{"a"}, "inputs": []object{{"name": "in.txt", "text": "x"}}}, false},
		{3, object{"skill": "shout", "script": "scripts/fake.sh"}, false},
		{3, object{"skill": "shout", "script": "scripts/nope.sh"}, true},
		{3, object{"skill": "shout", "script": "scripts/count.sh", "arguments_json": `{"n":0}`}, true},
		{3, object{"skill": "shout", "script": "scripts/shout.sh", "inputs": []object{{"name": "in.txt"}}}, true},
		{3, object{"skill": "shout", "script": "scripts/shout.sh", "inputs": []object{{"name": "in.txt", "handle": "out_guessed"}}}, true},
		{3, object{"skill": "shout", "script": "scripts/shout.sh", "inputs": []object{{"name": "../in.txt", "text": ""}}}, true},
	} {
		tool := tools[tc.tool]
		r := call(t, h, tool.Name, tc.arguments)
		if r.Failed != tc.failed {
			t.Errorf("%s %v: failed %v: %s", tool.Name, tc.arguments, r.Failed, r.Text)
		}
		if _, err := schema.New(schema.Options{}).Check(t.Context(), tool.Output, r.Structured); err != nil {
			t.Errorf("%s %v: %v: %s", tool.Name, tc.arguments, err, r.Structured)
		}
	}
}

// The whole path: a script runs with arguments and a file, what it wrote is the input of
// the next without passing through the model, and no other tenant's.
func TestRun(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	h.Grant("other", "")
	r := call(t, h, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/shout.sh", "arguments": []string{"a b", "c"},
		"inputs": []object{{"name": "in.txt", "text": "hello"}}})
	if r.Failed || !strings.Contains(r.Text, `"words: a b c\n"`) || !strings.Contains(told(t, r, "exitCode"), "0") {
		t.Fatalf("%s", r.Text)
	}
	if len(r.Files) != 1 || r.Files[0].Name != "out.txt" || string(r.Files[0].Data) != "HELLO" || r.Files[0].Handle == "" {
		t.Fatalf("the files are %+v", r.Files)
	}
	next := object{"skill": "shout", "script": "scripts/shout.sh", "inputs": []object{{"name": "in.txt", "handle": r.Files[0].Handle}}}
	again := call(t, h, toolset.RunSkillScript, next)
	if again.Failed || len(again.Files) != 1 || string(again.Files[0].Data) != "HELLO" {
		t.Errorf("with a handle: %s", again.Text)
	}
	text, _ := json.Marshal(next)
	if r := h.Tools.For("other", "model").Call(t.Context(), toolset.RunSkillScript, text, nil); !r.Failed || told(t, r, "status") != "invalid" {
		t.Errorf("another tenant took the file: %s", r.Text)
	}
}

// Case 59: a wrong script name is answered by the names it may run, a wrong skill by
// those of the skills; a script without a grant isn't among them.
func TestWrongNames(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "scripts/shout.sh")
	r := call(t, h, toolset.RunSkillScript, object{"skill": "shout", "script": "shout.sh"})
	if told(t, r, "status") != "name" || told(t, r, "names") != `["scripts/shout.sh"]` {
		t.Errorf("a wrong script: %s", r.Structured)
	}
	r = call(t, h, toolset.RunSkillScript, object{"skill": "Shout", "script": "scripts/shout.sh"})
	if told(t, r, "status") != "name" || told(t, r, "names") != `["shout"]` {
		t.Errorf("a wrong skill: %s", r.Structured)
	}
}

// A refusal that the next call puts right: the schema's path is told.
func TestRefusalThatHelps(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	r := call(t, h, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/count.sh", "arguments_json": `{"n":"many"}`})
	if told(t, r, "status") != "arguments" || !strings.Contains(r.Text, "/n") {
		t.Errorf("%s", r.Text)
	}
	r = call(t, h, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/count.sh", "arguments_json": `{"n":3}`})
	if r.Failed || !strings.Contains(r.Text, "counted --n 3") {
		t.Errorf("%s", r.Text)
	}
}

// O02, O04, O05, O11: what a script writes cannot pass for a word of ours: it stays within one
// JSON string, in one line, with its escapes and a model's tokens made visible. R27: the
// exit code alone tells of success.
func TestFraming(t *testing.T) {
	h := toolcase.Open(t, nil)
	h.Grant("acme", "")
	r := call(t, h, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/fake.sh"})
	if r.Failed || told(t, r, "exitCode") != "3" {
		t.Errorf("%s", r.Structured)
	}
	if n := strings.Count(r.Text, "\nstdout (data"); n != 1 {
		t.Errorf("%d lines say that they are stdout:\n%s", n, r.Text)
	}
	if strings.ContainsAny(r.Text, "\x1b\x07") || strings.Contains(r.Text, "<|") {
		t.Errorf("something got out:\n%q", r.Text)
	}
}

// The head and the tail of a long stream are kept, the model's limit is not the capture's.
func TestHeadAndTail(t *testing.T) {
	h := toolcase.Open(t, func(c *toolset.Config) { c.StreamBytes = 40 })
	h.Grant("acme", "")
	words := strings.Repeat("ä", 100)
	r := call(t, h, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/shout.sh", "arguments": []string{words, "end"}})
	var got struct {
		Stdout struct {
			Text, Tail   string
			OmittedBytes int
		}
		Truncated bool
	}
	if err := json.Unmarshal(r.Structured, &got); err != nil {
		t.Fatal(err)
	}
	whole := "words: " + words + " end\n"
	if !strings.HasPrefix(whole, got.Stdout.Text) || !strings.HasSuffix(whole, got.Stdout.Tail) || got.Truncated ||
		len(got.Stdout.Text)+len(got.Stdout.Tail)+got.Stdout.OmittedBytes != len(whole) || len(got.Stdout.Text) > 30 || len(got.Stdout.Tail) > 10 {
		t.Errorf("%+v", got)
	}
}

// A file comes in pieces that are text, and are the file when put together.
func TestReadInPieces(t *testing.T) {
	h := toolcase.Open(t, func(c *toolset.Config) { c.ResourceBytes = 7 })
	var whole strings.Builder
	for offset := 0; ; {
		r := call(t, h, toolset.ReadSkillResource, object{"skill": "tales", "path": "SKILL.md", "offset": offset})
		whole.WriteString(told(t, r, "text"))
		next := told(t, r, "nextOffset")
		if next == "" {
			break
		}
		fmt.Sscan(next, &offset)
	}
	if whole.String() != toolcase.Skills["tales/SKILL.md"] {
		t.Errorf("%q", whole.String())
	}
}

// Case 61: the same refused call again and again is refused each time, stands in the log
// as one counted entry, and is answered by a wait in the end.
func TestLoops(t *testing.T) {
	root := toolcase.Folder(t, "tales")
	synctest.Test(t, func(t *testing.T) {
		h := toolcase.Over(t, root, failing{errors.New("is never called")}, nil)
		asked, waits := 0, 0
		for range 1000 {
			r := call(t, h, toolset.RunSkillScript, object{"skill": "tales", "script": "x.sh"})
			if !r.Failed {
				t.Fatalf("%s", r.Text)
			}
			if told(t, r, "status") == "rate_limited" {
				waits++
			} else {
				asked++
			}
		}
		if asked != toolset.DefaultRefusals || waits != 1000-asked {
			t.Errorf("%d were asked and %d told to wait", asked, waits)
		}
		if err := h.Record.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var counted uint64
		entries := 0
		for leaf, err := range h.Record.Entries(t.Context(), "acme", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e := leaf.Entry; e.Kind == audit.Refusal {
				entries++
				counted += max(1, e.Count)
			}
		}
		if entries > 2 || counted != uint64(asked) {
			t.Errorf("the log has %d entries that count %d", entries, counted)
		}
	})
}

// failing is an executor that fails with this error.
type failing struct{ err error }

func (f failing) Execute(context.Context, executor.Request) (executor.Result, error) {
	return executor.Result{}, f.err
}

// Case 62, R26: an executor's error holds a path and a secret, and neither reaches the model.
func TestNothingOfTheHost(t *testing.T) {
	root := toolcase.Folder(t, "shout")
	f := toolcase.Over(t, root, failing{errors.New("open /srv/host/path: token=hunter2")}, nil)
	f.Grant("acme", "")
	r := call(t, f, toolset.RunSkillScript, object{"skill": "shout", "script": "scripts/shout.sh"})
	if !r.Failed || told(t, r, "status") != "executor_failed" {
		t.Errorf("%s", r.Structured)
	}
	// B7: it was admitted, so it is told with what proves it.
	if told(t, r, "call") == "" || !strings.HasPrefix(told(t, r, "digest"), "sha256:") || !strings.Contains(string(r.Structured), `"receipt":{"index":`) {
		t.Errorf("it is told without its proof: %s", r.Structured)
	}
	for _, leak := range []string{"/srv", "hunter2", root} {
		if strings.Contains(r.Text+string(r.Structured), leak) {
			t.Errorf("%q leaked: %s", leak, r.Text)
		}
	}
}

// What no tool has is said, whatever it is called.
func TestUnknownTool(t *testing.T) {
	h := toolcase.Open(t, nil)
	if r := call(t, h, "rm\n-rf", object{}); !r.Failed || strings.Count(r.Text, "\n") != 1 {
		t.Errorf("%q", r.Text)
	}
}
