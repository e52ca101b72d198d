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

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/mcpserver"
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
		Runner: runner, Skills: &shownSkills{h: h}, Hosts: h.Hosts, Policies: h.Store, Grants: h.Store, Logger: h.logger,
	})
}

// shownSkills is what a tenant's model may read: what was imported for the tenant, and
// the skills in folders that it does not stand before.
type shownSkills struct {
	h *House

	mu    sync.Mutex
	about map[bundle.Digest]string // descriptions of imported skills
}

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
	b, err := s.h.Read(ctx, tenant, name)
	if err != nil {
		return skill.Skill{}, err
	}
	return skill.FromBundle(name, b)
}

// mcp returns the endpoint of the Model Context Protocol over h's tools, which run what
// they run by runner.
func (s *server) mcp(h *House, runner toolset.Runner, auth httpapi.Authenticator, lim httpapi.Limiter) (*mcpserver.Handler, error) {
	tools, err := h.toolset(runner)
	if err != nil {
		return nil, err
	}
	c := mcpserver.Config{Tools: tools, Version: s.o.Version, Logger: s.log,
		Authenticate: func(r *http.Request) (access.Principal, bool, error) {
			p, err := auth.Authenticate(r)
			if errors.Is(err, httpapi.ErrUnauthenticated) {
				return access.Principal{}, false, nil
			}
			if err == nil {
				httpapi.Note(r.Context(), "mcp", p)
			}
			return p, err == nil, err
		},
		Refuse: func(w http.ResponseWriter, r *http.Request, status int, detail string) {
			httpapi.Refuse(w, r, mcpCodes[status], detail)
		},
		Enter: func(ctx context.Context, p access.Principal) (func(), time.Duration) { return lim.Enter(ctx, p, false) },
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
	http.StatusUnauthorized: client.Unauthenticated, http.StatusForbidden: client.Forbidden, http.StatusRequestTimeout: client.Timeout,
	http.StatusRequestEntityTooLarge: client.TooLarge, http.StatusTooManyRequests: client.RateLimited, http.StatusServiceUnavailable: client.Unavailable,
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
