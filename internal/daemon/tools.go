package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/turns"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/mcpserver"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/skill"
	"github.com/tracon-go/tracon/toolset"
)

// Toolset returns the tools that give a model the skills of this house, over the runner,
// which it starts.
func (h *House) Toolset(ctx context.Context) (*toolset.Toolset, error) {
	if err := h.AddRoots(); err != nil {
		return nil, err
	}
	runner, err := h.Start(ctx)
	if err != nil {
		return nil, err
	}
	return h.toolset(runner)
}

func (h *House) toolset(runner toolset.Runner) (*toolset.Toolset, error) {
	return toolset.New(toolset.Config{
		Runner: runner, Skills: &shownSkills{h: h, turns: turns.New(skillsAtOnce)}, Hosts: h.Hosts, Policies: h.Store, Grants: h.Store, Logger: h.logger,
	})
}

// shownSkills is what a tenant's model may read: what was imported for the tenant, and
// the skills in folders that it does not stand before.
type shownSkills struct {
	h     *House
	turns *turns.Turns // of those that read a whole skill

	mu    sync.Mutex
	about map[bundle.Digest]string // descriptions of imported skills
}

// skillsAtOnce is how many skills are read whole at once for models: each may have 32 MiB.
const skillsAtOnce = 4

// mostDescriptions is how many descriptions are remembered; a content never changes its own.
const mostDescriptions = 10_000

// List returns the tenant's skills, by name.
func (s *shownSkills) List(ctx context.Context, tenant string) ([]toolset.Summary, error) {
	imported, err := s.h.Store.Skills(ctx, tenant)
	if err != nil {
		return nil, err
	}
	list := []toolset.Summary{}
	for _, v := range imported {
		about, err := s.describe(ctx, tenant, v.Digest)
		if err != nil {
			return nil, err
		}
		list = append(list, toolset.Summary{Name: v.Skill, Description: about})
	}
	for _, f := range s.h.Skills.List() {
		if !slices.ContainsFunc(list, func(k toolset.Summary) bool { return k.Name == f.Name }) {
			list = append(list, toolset.Summary{Name: f.Name, Description: f.Description})
		}
	}
	slices.SortFunc(list, func(a, b toolset.Summary) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// describe reads the description of a content, once. A stored script has none.
func (s *shownSkills) describe(ctx context.Context, tenant string, digest bundle.Digest) (string, error) {
	s.mu.Lock()
	about, ok := s.about[digest]
	s.mu.Unlock()
	if ok {
		return about, nil
	}
	files, err := s.h.Store.Files(ctx, tenant, digest)
	switch {
	case errors.Is(err, grant.ErrNotFound): // deleted at this moment
		return "", nil
	case err != nil:
		return "", err
	}
	if _, ok := files.Listing().Entry("SKILL.md"); ok {
		text, err := files.ReadFile("SKILL.md")
		if err != nil {
			return "", err
		}
		var front struct {
			Description string `json:"description"`
		}
		_ = json.Unmarshal(skill.Frontmatter(text), &front) // what is no text describes nothing
		about = front.Description
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.about == nil || len(s.about) >= mostDescriptions {
		s.about = map[bundle.Digest]string{}
	}
	s.about[digest] = about
	return about, nil
}

// Skill returns the tenant's skill as it is now.
func (s *shownSkills) Skill(ctx context.Context, tenant, name string) (skill.Skill, error) {
	leave, err := s.turns.Take(ctx, tenant)
	if err != nil {
		return skill.Skill{}, err
	}
	defer leave()
	b, err := s.h.Read(ctx, tenant, name)
	if err != nil {
		return skill.Skill{}, err
	}
	return skill.FromBundle(name, b)
}

// shared runs a model's calls among the runs of the server, so that a tenant sees and
// stops them like any other, their memory is bounded with theirs, and a server that stops
// waits for them.
type shared struct{ runs *runs.Runs }

// Run implements toolset.Runner.
func (s shared) Run(ctx context.Context, call gate.Call) (tracon.Outcome, error) {
	live := call.Live
	defer live.Close()
	ended := make(chan runs.View, 1)
	v, err := s.runs.Start(ctx, call, func(v runs.View) { ended <- v })
	if err != nil {
		return tracon.Outcome{ID: v.ID}, err
	}
	if live != nil {
		s.show(ctx, call.Tenant, v.ID, live)
	}
	select {
	case v = <-ended:
	case <-ctx.Done():
		_, _ = s.runs.Cancel(call.Tenant, v.ID, call.Actor) // it may have ended
		v = <-ended
	}
	return v.Outcome, v.Err
}

// show sends what the run writes to live, until it has ended or ctx is done. Where too
// many follow already, nothing is shown: the outcome has it all.
func (s shared) show(ctx context.Context, tenant, id string, live *gate.Live) {
	f, err := s.runs.Follow(tenant, id, 0)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		e, err := f.Next(ctx)
		if err != nil || e.Kind == runs.End {
			return
		}
		if e.Kind == runs.Output {
			live.Send(e.Stream, []byte(e.Text))
		}
	}
}

// mcp returns the endpoint of the Model Context Protocol over h's tools.
func (s *server) mcp(h *House, auth httpapi.Authenticator, lim httpapi.Limiter) (*mcpserver.Handler, error) {
	tools, err := h.toolset(shared{s.runs})
	if err != nil {
		return nil, err
	}
	known := func(look func(*http.Request) (access.Principal, error)) func(*http.Request) (access.Principal, bool, error) {
		return func(r *http.Request) (access.Principal, bool, error) {
			p, err := look(r)
			if errors.Is(err, httpapi.ErrUnauthenticated) {
				return access.Principal{}, false, nil
			}
			return p, err == nil, err
		}
	}
	c := mcpserver.Config{Tools: tools, Version: s.o.Version, Logger: s.log,
		Authenticate: known(auth.Authenticate), Again: known(httpapi.Again(auth)),
		Enter: func(ctx context.Context, p access.Principal, run bool) (func(), time.Duration) {
			httpapi.Note(ctx, "mcp", p) // here alone: it is looked at again while others answer
			return lim.Enter(ctx, p, run)
		},
		Runs: s.runs,
		Refuse: func(w http.ResponseWriter, r *http.Request, status int, detail string) {
			httpapi.Refuse(w, r, mcpCodes[status], detail)
		},
	}
	if h.Config.Serve.PublicURL != "" {
		c.Resource = strings.TrimSuffix(h.Config.Serve.PublicURL, "/") + mcpPath
	}
	if h.Config.Serve.OIDCIssuer != "" {
		c.Issuers = []string{h.Config.Serve.OIDCIssuer}
	}
	return mcpserver.New(c)
}

// mcpCodes are the codes of what the endpoint refuses.
var mcpCodes = map[int]client.Code{
	http.StatusBadRequest:   client.BadRequest,
	http.StatusUnauthorized: client.Unauthenticated, http.StatusForbidden: client.Forbidden, http.StatusRequestTimeout: client.Timeout,
	http.StatusRequestEntityTooLarge: client.TooLarge, http.StatusTooManyRequests: client.RateLimited, http.StatusServiceUnavailable: client.Unavailable,
	http.StatusNotFound: client.NotFound, http.StatusMethodNotAllowed: client.MethodNotAllowed, http.StatusConflict: client.Conflict,
	http.StatusUnsupportedMediaType: client.UnsupportedMediaType, http.StatusInternalServerError: client.Internal,
}

// mcpPath is where the endpoint stands.
const mcpPath = "/mcp"

// ServeStdio serves one client of the Model Context Protocol over a pair of streams, for
// the principal p, until the client closes its side or ctx is done.
func (h *House) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, p access.Principal, version string, log *slog.Logger) error {
	tools, err := h.Toolset(ctx)
	if err != nil {
		return err
	}
	return mcpserver.Stdio(ctx, in, out, p, tools, version, log)
}
