package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/strictjson"
	"github.com/tracon-go/tracon/skill"
)

// The codes of this room's own. The others are those of the gates and of [tracon.Code].
const (
	codeOK          = "ok"
	codeInvalid     = "invalid"      // what the model sent fits no tool
	codeNotFound    = "not_found"    // there is no such skill or file
	codeUnusable    = "unusable"     // the skill cannot be read as it is
	codeRateLimited = "rate_limited" // too many refused calls in a row
	codeUnavailable = "unavailable"  // something cannot be read now
)

// problemJSON is what every answer has.
type problemJSON struct {
	Status  string   `json:"status"`
	Message string   `json:"message"`
	Names   []string `json:"names,omitempty"`
}

// fail is an answer that asks for something else.
func (s *Session) fail(code, message string, names ...string) Result {
	return failed(problemJSON{Status: code, Message: message, Names: names})
}

func failed(p problemJSON) Result {
	line := p.Status + ": " + p.Message
	if len(p.Names) > 0 {
		quoted := make([]string, len(p.Names))
		for i, n := range p.Names {
			quoted[i] = Quote(n)
		}
		line += " There is: " + strings.Join(quoted, ", ") + "."
	}
	return Result{Structured: marshal(p), Text: line + "\n", Failed: true}
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and lists of them
	}
	return b
}

// broken is for what only the operator may know.
func (s *Session) broken(what string, err error) Result {
	s.t.c.Logger.Error("a model's tool could not answer", "what", what, "tenant", s.tenant, "err", err)
	return s.fail(codeUnavailable, "This cannot be answered now. Try again later, or ask the operator.")
}

// decode reads what a model sent into v, strictly.
func decode(arguments json.RawMessage, v any) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return strictjson.Unmarshal(arguments, v)
}

func (s *Session) invalid(tool string, err error) Result {
	return s.fail(codeInvalid, fmt.Sprintf("The arguments of %s do not fit its schema: %s.", tool, oneLine(err.Error())))
}

// oneLine makes one line of a reason that may hold pieces of what a model sent.
func oneLine(text string) string {
	return strings.Trim(Quote(head(text, gate.MaxModelText)), `"`)
}

type listedSkill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Runnable    bool   `json:"runnable"`
}

func (s *Session) list(ctx context.Context, arguments json.RawMessage) Result {
	if err := decode(arguments, &struct{}{}); err != nil {
		return s.invalid(ListSkills, err)
	}
	skills, err := s.t.c.Skills.List(ctx, s.tenant)
	if err != nil {
		return s.broken(ListSkills, err)
	}
	may, err := s.runnable(ctx)
	if err != nil {
		return s.broken(ListSkills, err)
	}
	out := struct {
		problemJSON
		Skills []listedSkill `json:"skills"`
	}{problemJSON{Status: codeOK}, []listedSkill{}}
	text := fmt.Sprintf("%d skills. Names and descriptions are those of the skills' authors.\n", len(skills))
	for _, k := range skills {
		out.Skills = append(out.Skills, listedSkill{k.Name, k.Description, may.any(k.Name)})
		text += Quote(k.Name) + ": " + Quote(k.Description) + "\n"
	}
	return Result{Structured: marshal(out), Text: text}
}

type fileOfSkill struct {
	Path string `json:"path"`
	Size int    `json:"size"`
}

type scriptOfSkill struct {
	Script      string    `json:"script"`
	Description string    `json:"description"`
	Takes       gate.Mode `json:"takes"`
	Schema      string    `json:"argumentsSchema"`
	Runnable    bool      `json:"runnable"`
}

// skill reads the tenant's skill, or says why not.
func (s *Session) skill(ctx context.Context, name string) (skill.Skill, *Result) {
	k, err := s.t.c.Skills.Skill(ctx, s.tenant, name)
	if err == nil {
		return k, nil
	}
	var r Result
	switch {
	case errors.Is(err, grant.ErrNotFound) || errors.Is(err, gate.ErrUnknown):
		r = s.fail(codeNotFound, "There is no such skill. Use one of these exact names.", s.names(ctx)...)
	case errors.Is(err, bundle.ErrContent):
		s.t.c.Logger.Warn("a model asked for a skill that cannot be used", "tenant", s.tenant, "skill", name, "err", err)
		r = s.fail(codeUnusable, "The skill's files cannot be used as they are. Ask the operator to look at the skill.")
	default:
		r = s.broken("skill", err)
	}
	return skill.Skill{}, &r
}

// names returns the names of the tenant's skills, as many as are worth a model's while.
func (s *Session) names(ctx context.Context) []string {
	skills, err := s.t.c.Skills.List(ctx, s.tenant)
	if err != nil {
		return nil
	}
	var names []string
	for _, k := range skills[:min(len(skills), mostNames)] {
		names = append(names, k.Name)
	}
	return names
}

func (s *Session) load(ctx context.Context, arguments json.RawMessage) Result {
	var in struct {
		Skill string `json:"skill"`
	}
	if err := decode(arguments, &in); err != nil {
		return s.invalid(LoadSkill, err)
	}
	k, no := s.skill(ctx, in.Skill)
	if no != nil {
		return *no
	}
	may, err := s.runnable(ctx)
	if err != nil {
		return s.broken(LoadSkill, err)
	}
	out := struct {
		problemJSON
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		Instructions string          `json:"instructions"`
		Cut          bool            `json:"instructionsTruncated"`
		Files        []fileOfSkill   `json:"files"`
		Scripts      []scriptOfSkill `json:"scripts"`
	}{problemJSON{Status: codeOK}, in.Skill, k.Description, k.Instructions, false, []fileOfSkill{}, []scriptOfSkill{}}
	if cut := head(k.Instructions, s.t.c.ResourceBytes); len(cut) < len(k.Instructions) {
		out.Instructions, out.Cut = cut, true
		out.Message = "The instructions are cut. Read the rest of SKILL.md with " + ReadSkillResource + "."
	}
	for _, path := range k.Bundle.Paths() {
		data, _, _ := k.Bundle.Text(path)
		out.Files = append(out.Files, fileOfSkill{path, len(data)})
	}
	for _, sc := range k.Scripts {
		d := sc.Declaration
		out.Scripts = append(out.Scripts, scriptOfSkill{sc.Path, d.Description, d.Mode, string(d.Schema), may.may(in.Skill, sc.Path)})
	}

	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s: %s\n", Quote(out.Name), Quote(out.Description))
	for _, sc := range out.Scripts {
		fmt.Fprintf(&b, "script %s takes %s", Quote(sc.Script), sc.Takes)
		if !sc.Runnable {
			b.WriteString(", and may not run: ask the operator for a grant")
		}
		if sc.Description != "" {
			b.WriteString(": " + Quote(sc.Description))
		}
		if sc.Schema != "" {
			b.WriteString("; the schema of its arguments: " + Quote(sc.Schema))
		}
		b.WriteByte('\n')
	}
	for _, f := range out.Files {
		fmt.Fprintf(&b, "file %s, %d bytes\n", Quote(f.Path), f.Size)
	}
	if out.Message != "" {
		b.WriteString(out.Message + "\n")
	}
	b.WriteString(framed("instructions by the skill's author", out.Instructions))
	return Result{Structured: marshal(out), Text: b.String()}
}

// pieceJSON is a piece of a file of a skill.
type pieceJSON struct {
	problemJSON
	Path   string        `json:"path"`
	Size   int           `json:"size"`
	Offset int           `json:"offset"`
	Next   int           `json:"nextOffset,omitempty"`
	Binary bool          `json:"binary"`
	Text   string        `json:"text"`
	Digest bundle.Digest `json:"digest"`
}

func (s *Session) read(ctx context.Context, arguments json.RawMessage) Result {
	var in struct {
		Skill  string `json:"skill"`
		Path   string `json:"path"`
		Offset int    `json:"offset"`
	}
	if err := decode(arguments, &in); err != nil {
		return s.invalid(ReadSkillResource, err)
	}
	k, no := s.skill(ctx, in.Skill)
	if no != nil {
		return *no
	}
	data, digest, ok := k.Bundle.Text(in.Path)
	if !ok {
		paths := k.Bundle.Paths()
		return s.fail(codeNotFound, "The skill has no such file. Use an exact path.", paths[:min(len(paths), mostNames)]...)
	}
	if in.Offset < 0 || in.Offset > len(data) {
		return s.fail(codeInvalid, fmt.Sprintf("The file has %d bytes, and offset is not within them.", len(data)))
	}
	out := pieceJSON{problemJSON{Status: codeOK}, in.Path, len(data), in.Offset, 0, !isText(data), "", digest}
	piece := data[in.Offset:min(len(data), in.Offset+s.t.c.ResourceBytes)]
	if !out.Binary {
		// An offset within a character is one that nobody was given: it begins at the next.
		for len(piece) > 0 && !utf8.RuneStart(piece[0]) {
			piece = piece[1:]
			out.Offset++
		}
		if end := out.Offset + len(piece); end < len(data) {
			piece = head(data[out.Offset:], len(piece))
		}
		out.Text = piece
	}
	if end := out.Offset + len(piece); end < len(data) {
		out.Next = end
		out.Message = fmt.Sprintf("There is more: go on at offset %d.", end)
	}
	text := fmt.Sprintf("%s of skill %s: bytes %d to %d of %d\n", Quote(in.Path), Quote(in.Skill), out.Offset, out.Offset+len(piece), len(data))
	if out.Message != "" {
		text += out.Message + "\n"
	}
	r := Result{Structured: marshal(out)}
	if out.Binary {
		r.Text = text + "It is not text.\n"
		r.Files = []File{{Name: in.Path, MediaType: MediaType(in.Path, data), Data: []byte(piece)}}
		return r
	}
	r.Text = text + framed("a file of the skill", piece)
	return r
}

// isText reports whether a model can read the file.
func isText(data string) bool {
	return utf8.ValidString(data) && !strings.ContainsRune(data, 0) && !slices.Contains([]string{"%PDF-"}, head(data, 5))
}
