package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
)

// maxRuntime is the most bytes of a runtime's archive: those of its files by default,
// and their names.
const (
	maxRuntime  = 5 << 30
	runtimeTime = time.Hour
)

func (s *server) hostRoutes() {
	read, write := may(access.ReadHost), may(access.WriteHost)
	route(s, operation{id: "get-host", method: http.MethodGet, path: "/v1/host", tag: "host", summary: "What holds for every tenant", need: read}, s.getHost)
	route(s, operation{id: "change-host", method: http.MethodPatch, path: "/v1/host", tag: "host", summary: "Change what holds for every tenant", change: true, need: write}, s.changeHost)
	route(s, operation{id: "posture", method: http.MethodGet, path: "/v1/posture", tag: "host", summary: "Which walls stand around a script on this host, and how that is known", need: read}, s.posture)
	route(s, operation{id: "list-runtimes", method: http.MethodGet, path: "/v1/runtimes", tag: "host", summary: "The root file systems that scripts may run in, by name", need: read}, s.listRuntimes)
	route(s, operation{id: "get-runtime", method: http.MethodGet, path: "/v1/runtimes/{runtime}", tag: "host", summary: "One runtime", need: read}, s.getRuntime)
	route(s, operation{id: "import-runtime", method: http.MethodPost, path: "/v1/runtimes/{runtime}", tag: "host", summary: "Import a root file system, or a container image in layers, from an archive, and name it", need: write,
		status: http.StatusCreated, raw: true, maxBody: maxRuntime, large: true,
		body: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/x-tar": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}, s.importRuntime)
	route(s, operation{id: "remove-runtime", method: http.MethodDelete, path: "/v1/runtimes/{runtime}", tag: "host", summary: "Take a runtime's name away", change: true, need: write}, s.removeRuntime)
}

// errNotOffered is the answer of a host that was not given what it takes.
func errNotOffered() error { return problem(client.NotOffered, "this host does not do it") }

func (s *server) fixed() bool { return s.Host != nil && s.Host.Fixed() }

// hostTag is that of the settings that are kept. Where a file says them they do not
// change while the server runs, or all of them do.
func hostTag(revision int64) string { return params.ETag("host", strconv.FormatInt(revision, 10)) }

func (s *server) getHost(ctx context.Context, _ access.Principal, _ *struct{}) (*tagged[client.Host], error) {
	h, err := s.Admin.Host(ctx)
	if err != nil {
		return nil, err
	}
	_, revision, err := s.Store.HostAt(ctx)
	if err != nil {
		return nil, err
	}
	l := h.Content.OrDefaults()
	out := client.Host{Enabled: h.Enabled, Interpreters: map[string]client.Interpreter{}, Network: string(h.Network), RequireWalls: h.RequireWalls,
		TrustClaimed: h.TrustClaimed, Fixed: s.fixed(),
		Content: client.ContentLimits{FileBytes: l.FileBytes, TotalBytes: l.TotalBytes, Files: l.Files, Depth: l.Depth, PathBytes: l.PathBytes}}
	if s.Host != nil {
		out.Platform = "linux/" + runtime.GOARCH
	}
	for ext, in := range h.Interpreters {
		out.Interpreters[ext] = client.Interpreter{Path: in.Path, Name: in.Name, Digest: in.Digest, Image: in.Image}
	}
	return &tagged[client.Host]{hostTag(revision), out}, nil
}

func (s *server) changeHost(ctx context.Context, p access.Principal, in *struct {
	params.IfMatch
	Body client.HostChange
}) (*tagged[client.Host], error) {
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	if s.fixed() {
		return nil, problem(client.Fixed, "the host's configuration file says it: change it there")
	}
	probed, err := s.probe(ctx, in.Body.Interpreters)
	if err != nil {
		return nil, err
	}
	_, err = s.Admin.SetHost(ctx, p.Actor, func(h *gate.Host) error {
		_, revision, err := s.Store.HostAt(ctx) // behind h: see changePolicy
		if err != nil {
			return err
		}
		if err := m.Check(hostTag(revision)); err != nil {
			return err
		}
		assign(&h.Enabled, in.Body.Enabled)
		if in.Body.Network != nil {
			h.Network = gate.Network(*in.Body.Network)
		}
		if in.Body.RequireWalls != nil {
			h.RequireWalls = slices.Clone(*in.Body.RequireWalls)
		}
		for _, ext := range in.Body.Unlist {
			delete(h.Interpreters, ext)
		}
		for ext, found := range probed {
			if h.Interpreters == nil {
				h.Interpreters = map[string]gate.Interpreter{}
			}
			h.Interpreters[ext] = found
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.getHost(ctx, p, nil)
}

// probe finds the interpreters before anything is changed.
func (s *server) probe(ctx context.Context, wanted map[string]string) (map[string]gate.Interpreter, error) {
	if len(wanted) > 0 && s.Host == nil {
		return nil, errNotOffered()
	}
	found := map[string]gate.Interpreter{}
	for ext, text := range wanted {
		if err := gate.CheckExtension(ext); err != nil {
			return nil, problem(client.Invalid, err.Error())
		}
		in, err := s.Host.Probe(ctx, ext, text)
		if err != nil {
			return nil, problem(client.Invalid, err.Error())
		}
		found[ext] = in
	}
	return found, nil
}

func (s *server) posture(ctx context.Context, _ access.Principal, _ *struct{}) (*answer[client.Posture], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	p, err := s.Host.Posture(ctx)
	if err != nil {
		return nil, err
	}
	return &answer[client.Posture]{p}, nil
}

func (s *server) listRuntimes(ctx context.Context, _ access.Principal, in *struct{ params.Paging }) (*answer[client.Page[client.Runtime]], error) {
	list := params.ListOf("", "list-runtimes")
	after, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	if s.Host == nil {
		return nil, errNotOffered()
	}
	all, err := s.Host.Runtimes(ctx)
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Runtime]{Items: []client.Runtime{}}
	for _, r := range all {
		if after != "" && r.Name <= after {
			continue
		}
		if len(page.Items) == in.Limit {
			page.Next = params.NewCursor(list, page.Items[in.Limit-1].Name)
			break
		}
		page.Items = append(page.Items, r)
	}
	return &answer[client.Page[client.Runtime]]{page}, nil
}

func (s *server) findRuntime(ctx context.Context, name string) (client.Runtime, error) {
	if s.Host == nil {
		return client.Runtime{}, errNotOffered()
	}
	all, err := s.Host.Runtimes(ctx)
	if err != nil {
		return client.Runtime{}, err
	}
	i := slices.IndexFunc(all, func(r client.Runtime) bool { return r.Name == name })
	if i < 0 {
		return client.Runtime{}, notFound()
	}
	return all[i], nil
}

func runtimeTag(r client.Runtime) string { return params.ETag("runtime", r.Name, r.Digest.String()) }

func (s *server) getRuntime(ctx context.Context, _ access.Principal, in *struct {
	Runtime string `path:"runtime" maxLength:"512"`
}) (*tagged[client.Runtime], error) {
	r, err := s.findRuntime(ctx, in.Runtime)
	if err != nil {
		return nil, err
	}
	return &tagged[client.Runtime]{runtimeTag(r), r}, nil
}

func (s *server) importRuntime(ctx context.Context, p access.Principal, in *struct {
	Runtime  string `path:"runtime" maxLength:"512"`
	Replace  bool   `query:"replace" doc:"take the name from another root file system"`
	Reason   string `query:"reason" maxLength:"4096"`
	Platform string `query:"platform" maxLength:"64" pattern:"^linux/[a-z0-9_]+(/[a-z0-9_.]+)?$" doc:"what an image in layers must be made for, such as linux/arm64; none: the host's"`
}) (*tagged[client.ImportedRuntime], error) {
	if s.Host == nil {
		return nil, errNotOffered()
	}
	c := callOf(ctx)
	control := http.NewResponseController(c.writer)
	_ = control.SetReadDeadline(time.Now().Add(runtimeTime))
	body := &remembers{Reader: c.request.Body}
	made, err := s.Host.ImportRuntime(ctx, admin.Naming{Actor: p.Actor, Name: in.Runtime, Reason: in.Reason, Replace: in.Replace}, in.Platform, body)
	_ = control.SetReadDeadline(time.Time{})
	switch {
	case err != nil && body.err != nil:
		return nil, bodyProblem(body.err)
	case errors.Is(err, bundle.ErrContent):
		return nil, problem(client.BadContent, err.Error())
	case err != nil:
		return nil, err
	}
	return &tagged[client.ImportedRuntime]{runtimeTag(made.Runtime), made}, nil
}

func (s *server) removeRuntime(ctx context.Context, p access.Principal, in *struct {
	params.IfMatch
	Runtime string `path:"runtime" maxLength:"512"`
	Reason  string `query:"reason" maxLength:"4096"`
}) (*answer[client.RemovedRuntime], error) {
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	r, err := s.findRuntime(ctx, in.Runtime)
	if err != nil {
		return nil, err
	}
	if err := m.Check(runtimeTag(r)); err != nil {
		return nil, err
	}
	gone, err := s.Host.RemoveRuntime(ctx, p.Actor, in.Runtime, in.Reason)
	if err != nil {
		return nil, err
	}
	return &answer[client.RemovedRuntime]{gone}, nil
}
