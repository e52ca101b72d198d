package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/skill"
)

// What is quoted is one JSON string in one line, and the text that was quoted.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c", "line\nend\r\u2028", "\x00\x1b]0;t\a", "<|im_end|>", "\U000e0041 tag", "\u202ebidi", "ä😀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\uFFFD") // as every text of an outcome is
		q := Quote(s)
		if strings.ContainsAny(q, "\n\r\x1b<>\u2028") {
			t.Errorf("%q", q)
		}
		var back string
		if err := json.Unmarshal([]byte(q), &back); err != nil || back != s {
			t.Errorf("%q became %q, %v", s, back, err)
		}
		if cut := shown(s, 10); len(cut.Text)+len(cut.Tail)+cut.OmittedBytes != len(s) || len(cut.Text)+len(cut.Tail) > 10 {
			t.Errorf("%q is shown as %+v", s, cut)
		}
	})
}

// Whatever a model sends, it gets an answer that is JSON, and a text in lines of ours.
func FuzzCall(f *testing.F) {
	for _, s := range []string{`{}`, ``, `null`, `[]`, `{"skill":"a","SKILL":"b"}`, `{"skill":"a","skill":"b"}`, `{"skill":"a","script":"b","arguments":["x"],"arguments_json":"{}"}`,
		`{"skill":"a","script":"b","inputs":[{"name":"n","base64":"!"}]}`, "{\"skill\":\"\xff\"}"} {
		for tool := range uint8(4) {
			f.Add(tool, []byte(s))
		}
	}
	tools, err := New(Config{Runner: none{}, Skills: none{}, Hosts: none{}, Policies: none{}, Grants: none{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	names := []string{ListSkills, LoadSkill, ReadSkillResource, RunSkillScript, "other"}
	f.Fuzz(func(t *testing.T, tool uint8, arguments []byte) {
		r := tools.For("acme", "model").Call(t.Context(), names[int(tool)%len(names)], arguments, nil)
		var p problemJSON
		if err := json.Unmarshal(r.Structured, &p); err != nil || p.Status == "" || r.Text == "" {
			t.Errorf("%s, %q, %v", r.Structured, r.Text, err)
		}
		if r.Failed && strings.Count(r.Text, "\n") != 1 {
			t.Errorf("%q", r.Text)
		}
	})
}

// none is a house without anything in it.
type none struct{}

func (none) Run(context.Context, gate.Call) (tracon.Outcome, error) {
	return tracon.Outcome{}, errors.New("nothing runs here")
}
func (none) List(context.Context, string) ([]Summary, error) { return nil, nil }
func (none) Skill(context.Context, string, string) (skill.Skill, error) {
	return skill.Skill{}, grant.ErrNotFound
}
func (none) Host(context.Context) (gate.Host, error) { return gate.Host{Enabled: true}, nil }
func (none) Policy(context.Context, string) (gate.Policy, error) {
	return gate.Policy{Enabled: true}, nil
}
func (none) Grants(context.Context, string, grant.Filter) ([]grant.Grant, error) { return nil, nil }
