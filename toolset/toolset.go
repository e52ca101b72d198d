package toolset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/skill"
)

// What a [Config] means by zero.
const (
	DefaultStreamBytes   = 16 << 10 // of each stream, for the model
	DefaultResourceBytes = 64 << 10 // of one piece of a file of a skill
	DefaultKeptBytes     = 64 << 20 // of all outputs that are kept for a next call
	DefaultKeptFor       = time.Hour
	DefaultRefusals      = 20 // one after the other, before the calls are answered by a wait
)

// A Runner runs a call through the gates. [tracon.Runner] is one.
type Runner interface {
	Run(ctx context.Context, call gate.Call) (tracon.Outcome, error)
}

// Skills is what a tenant's model may read. Another tenant's skills are not there. It
// must be safe for concurrent use.
type Skills interface {
	// List returns the tenant's skills, by name.
	List(ctx context.Context, tenant string) ([]Summary, error)

	// Skill returns the tenant's skill as it is now, or an error that wraps
	// grant.ErrNotFound or gate.ErrUnknown. One that wraps bundle.ErrContent means
	// that it cannot be used.
	Skill(ctx context.Context, tenant, name string) (skill.Skill, error)
}

// A Summary is what a list says of a skill.
type Summary struct {
	Name, Description string
}

// Config is what the tools stand on. Fields without a note are required.
type Config struct {
	Runner   Runner
	Skills   Skills
	Hosts    gate.Hosts
	Policies gate.Policies
	Grants   Grants

	StreamBytes   int           // of each stream that a model is shown, head and tail; zero: 16 KiB
	ResourceBytes int           // of one piece of a skill's file; zero: 64 KiB
	KeptBytes     int64         // of outputs kept for a next call, of all tenants, an equal share for each at least; zero: 64 MiB
	KeptFor       time.Duration // how long an output is kept; zero: 1 h
	Refusals      int           // of one actor in a row before the next calls have to wait; zero: 20
	Logger        *slog.Logger  // what only the operator may see; nil: slog.Default()
}

// Grants is the part of a [grant.Book] that says what may be shown.
type Grants interface {
	Grants(ctx context.Context, tenant string, f grant.Filter) ([]grant.Grant, error)
}

// A Toolset makes the tools of every tenant. It is safe for concurrent use.
type Toolset struct {
	c       Config
	kept    *kept
	refused *patience
}

// New returns the tools over c. It fails when a required field is missing or a number is
// negative.
func New(c Config) (*Toolset, error) {
	if c.Runner == nil || c.Skills == nil || c.Hosts == nil || c.Policies == nil || c.Grants == nil {
		return nil, errors.New("toolset: Config needs Runner, Skills, Hosts, Policies and Grants")
	}
	for name, n := range map[string]int64{"StreamBytes": int64(c.StreamBytes), "ResourceBytes": int64(c.ResourceBytes),
		"KeptBytes": c.KeptBytes, "KeptFor": int64(c.KeptFor), "Refusals": int64(c.Refusals)} {
		if n < 0 {
			return nil, fmt.Errorf("toolset: Config.%s is negative; zero means the default", name)
		}
	}
	c.StreamBytes = cmp.Or(c.StreamBytes, DefaultStreamBytes)
	c.ResourceBytes = cmp.Or(c.ResourceBytes, DefaultResourceBytes)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Toolset{
		c:       c,
		kept:    newKept(cmp.Or(c.KeptBytes, DefaultKeptBytes), cmp.Or(c.KeptFor, DefaultKeptFor)),
		refused: newPatience(cmp.Or(c.Refusals, DefaultRefusals)),
	}, nil
}

// For returns the tools of the tenant, called by the actor. Both come from a credential,
// never from a model.
func (t *Toolset) For(tenant, actor string) *Session {
	return &Session{t: t, tenant: tenant, actor: actor}
}

// A Session is the tools of one tenant and actor. It holds nothing that has to be
// closed, and is safe for concurrent use.
type Session struct {
	t             *Toolset
	tenant, actor string
	still         func(context.Context) error
}

// Still returns the session for one request: when a call of it has its slot, still is
// asked whether who sent it may still, as a [gate.Call] says. Nil: nobody is asked.
func (s *Session) Still(still func(context.Context) error) *Session {
	c := *s
	c.still = still
	return &c
}

// Skills returns the skills that the tools speak of, by name.
func (s *Session) Skills(ctx context.Context) ([]Summary, error) {
	return s.t.c.Skills.List(ctx, s.tenant)
}

// Skill returns one of them as it is now; its errors are those of [Skills].
func (s *Session) Skill(ctx context.Context, name string) (skill.Skill, error) {
	return s.t.c.Skills.Skill(ctx, s.tenant, name)
}

// A Tool is one of the four, as the interfaces of providers want it.
type Tool struct {
	Name        string
	Title       string
	Description string
	Input       json.RawMessage // JSON Schema: every property typed, no unknown members
	Output      json.RawMessage // JSON Schema of [Result.Structured]
	ReadOnly    bool            // it runs nothing
}

// A Result is the answer of a tool. Whatever went wrong, it is there: a model needs an
// answer that it understands.
type Result struct {
	Structured json.RawMessage // by the tool's Output
	Text       string          // the same for a model that reads text; no script and no skill can imitate its framing
	Failed     bool            // the model, or somebody else, has something to do first; Text says what
	Files      []File          // what a client may show beside, in all within the limit for a resource
}

// A File is a part of an answer that is not text for the model alone.
type File struct {
	Name      string // its path
	Handle    string // by which a next call may take it; empty for a file of a skill
	MediaType string
	Data      []byte
}

// Call calls the tool by its name, with arguments as a model sent them. Live, which may
// be nil, shows the output of a script while it runs.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage, live *gate.Live) Result {
	switch tool {
	case ListSkills:
		return s.list(ctx, arguments)
	case LoadSkill:
		return s.load(ctx, arguments)
	case ReadSkillResource:
		return s.read(ctx, arguments)
	case RunSkillScript:
		return s.run(ctx, arguments, live)
	}
	return s.fail(codeInvalid, fmt.Sprintf("There is no tool %s. Use one of: %s, %s, %s, %s.", Quote(short(tool)), ListSkills, LoadSkill, ReadSkillResource, RunSkillScript))
}
