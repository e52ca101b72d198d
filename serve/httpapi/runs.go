package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
	"github.com/tracon-go/tracon/serve/runs"
	"github.com/tracon-go/tracon/toolcall"
)

func (s *server) runRoutes() {
	body := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {}}}
	run := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[client.Run](), true, "Run")
	route(s, operation{id: "start-run", method: http.MethodPost, path: "/v1/runs", tag: "runs", summary: "Run a script, when every gate says yes",
		about: "Waits for the end and answers 200; when the caller leaves first, the run is cancelled. With Prefer: respond-async, or wait=SECONDS, " +
			"it answers 202 once the run is admitted, or after so many seconds, and the run goes on by itself. With an Idempotency-Key the same call " +
			"runs once, however often it is sent within 24 hours, and goes on when the caller leaves. What was never started is a problem, with the gate's name as its code where one refused.",
		need: may(access.WriteRuns), maxBody: maxRunBody, raw: true, body: body,
		answers: map[string]*huma.Response{"202": {Description: "admitted; it goes on by itself", Content: map[string]*huma.MediaType{"application/json": {Schema: run}}}}}, s.startRun)
	// The handler decodes the body: the library would keep it thrice.
	body.Content["application/json"].Schema = s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[client.NewRun](), true, "NewRun")
	route(s, operation{id: "list-runs", method: http.MethodGet, path: "/v1/runs", tag: "runs", summary: "The tenant's runs, the newest first, without their output",
		about: "Those under way are those of the host that answers.",
		need:  may(access.ReadRuns)}, s.listRuns)
	route(s, operation{id: "get-run", method: http.MethodGet, path: "/v1/runs/{run}", tag: "runs", summary: "One run, with its output while that is kept",
		need: may(access.ReadRuns)}, s.getRun)
	route(s, operation{id: "cancel-run", method: http.MethodPost, path: "/v1/runs/{run}/cancel", tag: "runs", summary: "Stop a run",
		about: "A run that has ended stays as it is. The log's ending names who stopped it.",
		need:  may(access.WriteRuns)}, s.cancelRun)
	for _, stream := range []string{"stdout", "stderr"} {
		route(s, operation{id: "get-run-" + stream, method: http.MethodGet, path: "/v1/runs/{run}/" + stream, tag: "runs", summary: "What a run wrote to " + stream + ", as text, while it is kept",
			need: may(access.ReadRuns), answers: fileAnswer("text/plain; charset=utf-8", "the text")}, s.getStream(stream))
	}
	route(s, operation{id: "get-run-output", method: http.MethodGet, path: "/v1/runs/{run}/output", tag: "runs", summary: "One file that a run wrote, while it is kept",
		need: may(access.ReadRuns), answers: fileAnswer("application/octet-stream", "the file")}, s.getOutput)
	s.eventRoutes(run)
}

// fileAnswer documents an answer that is a file.
func fileAnswer(kind, about string) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: about, Content: map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
}

// runID is the parameter of every operation on one run.
type runID struct {
	ID string `path:"run" maxLength:"64"`
}

func (s *server) listRuns(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill string `query:"skill" maxLength:"512" doc:"only runs of this skill"`
}) (*answer[client.Page[client.Run]], error) {
	list := params.ListOf(p.Tenant, "list-runs", in.Skill)
	before, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	// What has ended meanwhile is in both, so those under way are asked for first.
	here := s.Runs.List(p.Tenant, in.Skill, before, in.Limit+1)
	records, err := s.Store.Calls(ctx, p.Tenant, toolcall.Filter{Skill: in.Skill, Before: before, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	var all []client.Run
	known := map[string]int{} // where it stands in all
	for _, v := range here {
		known[v.ID] = len(all)
		all = append(all, withoutOutput(toRun(v, false)))
	}
	for _, r := range records {
		if i, ok := known[r.ID]; ok {
			all[i] = settledBy(all[i], r)
			continue
		}
		all = append(all, recordedRun(r))
	}
	slices.SortFunc(all, func(a, b client.Run) int { return strings.Compare(b.ID, a.ID) })
	page := client.Page[client.Run]{Items: []client.Run{}}
	if len(all) > in.Limit {
		all = all[:in.Limit]
		page.Next = params.NewCursor(list, all[in.Limit-1].ID)
	}
	page.Items = append(page.Items, all...)
	return &answer[client.Page[client.Run]]{page}, nil
}

func (s *server) getRun(ctx context.Context, p access.Principal, in *runID) (*answer[client.Run], error) {
	run, err := s.run(ctx, p.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.going(ctx, p.Tenant, textOf(run)); err != nil {
		return nil, err
	}
	return &answer[client.Run]{run}, nil
}

// run returns the tenant's run as it is here, else as its record tells.
func (s *server) run(ctx context.Context, tenant, id string) (client.Run, error) {
	v, err := s.Runs.Run(tenant, id)
	if err == nil {
		return s.settled(ctx, toRun(v, false)), nil
	}
	r, err := s.Store.Call(ctx, tenant, id)
	if err != nil {
		return client.Run{}, err
	}
	return recordedRun(r), nil
}

// cancelTime is how long a cancellation waits for the run's end, which the runner
// answers at once.
const cancelTime = 5 * time.Second

func (s *server) cancelRun(ctx context.Context, p access.Principal, in *runID) (*answer[client.Run], error) {
	_, err := s.Runs.Cancel(p.Tenant, in.ID, p.Actor)
	if err == nil {
		ctx, stop := context.WithTimeout(ctx, cancelTime)
		defer stop()
		_, err = s.Runs.Wait(ctx, p.Tenant, in.ID)
	}
	if err != nil && !errors.Is(err, runs.ErrNotFound) && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	run, err := s.run(ctx, p.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	return &answer[client.Run]{withoutOutput(run)}, nil
}

// A download is a file that no browser shows or runs.
type download struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func (s *server) getStream(stream string) func(context.Context, access.Principal, *runID) (*download, error) {
	return func(ctx context.Context, p access.Principal, in *runID) (*download, error) {
		v, err := s.endedHere(p.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		text := v.Outcome.Stdout
		if stream == "stderr" {
			text = v.Outcome.Stderr
		}
		if err := s.going(ctx, p.Tenant, int64(len(text))); err != nil {
			return nil, err
		}
		return &download{"text/plain; charset=utf-8", savedAs(stream + ".txt"), []byte(text)}, nil
	}
}

func (s *server) getOutput(ctx context.Context, p access.Principal, in *struct {
	ID   string `path:"run" maxLength:"64"`
	Path string `query:"path" required:"true" maxLength:"512" doc:"of the file, as the run names it"`
}) (*download, error) {
	v, err := s.endedHere(p.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	for _, f := range v.Outcome.Outputs {
		if f.Path == in.Path {
			if err := s.going(ctx, p.Tenant, int64(len(f.Data))); err != nil {
				return nil, err
			}
			return &download{"application/octet-stream", savedAs(path.Base(f.Path)), f.Data}, nil
		}
	}
	return nil, notFound()
}

// endedHere returns the run, which has ended with an outcome that is still kept here.
func (s *server) endedHere(tenant, id string) (runs.View, error) {
	v, err := s.Runs.Run(tenant, id)
	switch {
	case err != nil:
		return v, err
	case v.Stage != runs.Ended:
		return v, problem(client.Conflict, "the run has not ended yet")
	case v.Err != nil:
		return v, problem(client.NotFound, "the run has no output; its code tells why")
	}
	return v, nil
}

// savedAs names a file that is to be saved.
func savedAs(name string) string {
	if v := mime.FormatMediaType("attachment", map[string]string{"filename": name}); v != "" {
		return v
	}
	return "attachment"
}
