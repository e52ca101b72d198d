package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/toolset"
)

// Skills as resources: https://modelcontextprotocol.io/seps/2640-skills-extension.
const (
	skillsExtension = "io.modelcontextprotocol/skills"
	skillScheme     = "skill"
	markdown        = "SKILL.md"
	skillsPage      = 20 // skills of one part of skills/list: each comes with all its files
)

// skillURI is the address of a file of a skill.
func skillURI(name, file string) string {
	elements := strings.Split(file, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return skillScheme + "://" + url.PathEscape(name) + "/" + strings.Join(elements, "/")
}

// parseSkillURI reads what skillURI writes. The names in it are compared by exact bytes.
func parseSkillURI(uri string) (name, file string, ok bool) {
	rest, found := strings.CutPrefix(uri, skillScheme+"://")
	if !found {
		return "", "", false
	}
	escaped, escapedFile, found := strings.Cut(rest, "/")
	if !found {
		return "", "", false
	}
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", "", false
	}
	file, err = url.PathUnescape(escapedFile)
	return name, file, err == nil && name != "" && file != ""
}

// addResources answers for every file of every skill, listed or not.
func (s *server) addResources() {
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: skillScheme + "://{skill}/{+path}", Name: "skill-file", Title: "A file of a skill",
		Description: "The files of the skills, by the skill's name and the file's path in it.",
	}, s.readResource)
}

// showSkills lists the instructions of each skill.
func (s *server) showSkills(skills []toolset.Summary) {
	now := map[string]bool{}
	for _, k := range skills {
		now[k.Name] = true
		if s.skills[k.Name] {
			continue
		}
		uri := skillURI(k.Name, markdown)
		if u, err := url.Parse(uri); err != nil || !u.IsAbs() {
			continue // the library would not take it; the tools have it even so
		}
		s.skills[k.Name] = true
		s.AddResource(&mcp.Resource{URI: uri, Name: k.Name, Description: k.Description, MIMEType: "text/markdown"}, s.readResource)
	}
	for name := range s.skills {
		if !now[name] {
			delete(s.skills, name)
			s.RemoveResources(skillURI(name, markdown))
		}
	}
}

func (s *server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	name, file, ok := parseSkillURI(uri)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	k, err := s.skill(ctx, uri, name)
	if err != nil {
		return nil, err
	}
	data, _, ok := k.Bundle.Text(file)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: toolset.MediaType(file, data)}
	if path.Base(file) == markdown {
		c.MIMEType = "text/markdown"
	}
	// The bytes are what the digests of skills/get are of.
	if utf8.ValidString(data) && data != "" {
		c.Text = data
	} else {
		c.Blob = []byte(data)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// skill reads a skill for an address. What is wrong on the host is told to the log alone.
func (s *server) skill(ctx context.Context, uri, name string) (skill.Skill, error) {
	k, err := s.tools.Skill(ctx, name)
	switch {
	case err == nil:
		return k, nil
	case errors.Is(err, grant.ErrNotFound) || errors.Is(err, gate.ErrUnknown):
		return skill.Skill{}, mcp.ResourceNotFoundError(uri)
	}
	s.log.Error("a skill could not be read for a model", "skill", name, "err", err)
	return skill.Skill{}, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The skill cannot be read now. Ask the operator."}
}

// An entry is a skill as skills/list and skills/get tell it.
type entry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []resourceEntry `json:"resources"`
}

type resourceEntry struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"` // bytes
}

type skillsListParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

type skillsListResult struct {
	mcp.ResultBase
	mcp.Cacheable
	whole
	Skills     []entry `json:"skills"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

type skillsGetParams struct {
	mcp.ParamsBase
	URI string `json:"uri"`
}

// whole is what the newest protocol wants each result to say; the library says it of its
// own methods alone.
type whole struct {
	ResultType string `json:"resultType"`
}

var complete = whole{ResultType: "complete"}

type skillsGetResult struct {
	mcp.ResultBase
	whole
	Skill entry `json:"skill"`
}

func (s *server) addSkillMethods() {
	list := func(ctx context.Context, _ *mcp.ServerSession, p *skillsListParams) (*skillsListResult, error) {
		return s.listSkills(ctx, p)
	}
	get := func(ctx context.Context, _ *mcp.ServerSession, p *skillsGetParams) (*skillsGetResult, error) {
		return s.getSkill(ctx, p)
	}
	if err := errors.Join(mcp.AddReceivingCustomMethod(s.Server, "skills/list", list), mcp.AddReceivingCustomMethod(s.Server, "skills/get", get)); err != nil {
		panic(err) // the library has taken the names for methods of its own
	}
}

// listSkills tells the skills by name; a cursor is the last name that was told. A skill
// that cannot be used is none.
func (s *server) listSkills(ctx context.Context, p *skillsListParams) (*skillsListResult, error) {
	after := ""
	if p != nil {
		after = p.Cursor
	}
	all, err := s.tools.Skills(ctx)
	if err != nil {
		s.log.Error("the skills could not be listed for a model", "err", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The skills cannot be listed now. Ask the operator."}
	}
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.Name
	}
	slices.Sort(names)
	at, found := slices.BinarySearch(names, after)
	if found {
		at++
	}
	out := &skillsListResult{Cacheable: mcp.Cacheable{CacheScope: "private"}, whole: complete, Skills: []entry{}}
	for i, name := range names[at:] {
		if i == skillsPage {
			out.NextCursor = names[at+i-1]
			break
		}
		if k, err := s.skill(ctx, name, name); err == nil {
			if e, ok := asEntry(name, k); ok {
				out.Skills = append(out.Skills, e)
			}
		}
	}
	return out, nil
}

func (s *server) getSkill(ctx context.Context, p *skillsGetParams) (*skillsGetResult, error) {
	uri := ""
	if p != nil {
		uri = p.URI
	}
	name, file, ok := parseSkillURI(uri)
	if !ok || file != markdown {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	k, err := s.skill(ctx, uri, name)
	if err != nil {
		return nil, err
	}
	e, ok := asEntry(name, k)
	if !ok {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	return &skillsGetResult{whole: complete, Skill: e}, nil
}

// asEntry tells a skill. A stored script, which has no SKILL.md, is none to a client.
func asEntry(name string, k skill.Skill) (entry, bool) {
	text, _, ok := k.Bundle.Text(markdown)
	e := entry{URI: skillURI(name, markdown), Frontmatter: skill.Frontmatter([]byte(text)), Resources: []resourceEntry{}}
	if !ok || e.Frontmatter == nil {
		return entry{}, false
	}
	for _, p := range k.Bundle.Paths() {
		text, digest, _ := k.Bundle.Text(p)
		e.Resources = append(e.Resources, resourceEntry{skillURI(name, p), digest.String(), len(text)})
	}
	return e, true
}
