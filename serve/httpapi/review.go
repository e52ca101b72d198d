package httpapi

import (
	"context"
	"net/http"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/skill"
)

func (s *server) reviewRoutes() {
	route(s, operation{id: "review", method: http.MethodGet, path: "/v1/review", tag: "grants", summary: "What a reviewer reads before a grant",
		about: "The content as it is now, its digest, what changed since it was granted, and signs of risk. The digest goes into the grant.",
		need:  may(access.ReadGrants)}, s.review)
	route(s, operation{id: "difference", method: http.MethodGet, path: "/v1/difference", tag: "grants", summary: "What has changed since the grant",
		need: may(access.ReadGrants)}, s.difference)
	route(s, operation{id: "explain", method: http.MethodPost, path: "/v1/explain", tag: "grants", summary: "Ask every gate about a call, and run nothing", maxBody: gate.CeilingMaxArguments + DefaultMaxBody, large: true,
		need: may(access.ReadGrants)}, s.explain)
}

// Reviewed are the parameters of what is looked at before a grant.
type Reviewed struct {
	Skill      string `query:"skill" required:"true" minLength:"1" maxLength:"512"`
	Script     string `query:"script" maxLength:"512" doc:"one script; or say allScripts"`
	AllScripts bool   `query:"allScripts"`
}

func (s *server) reviewed(ctx context.Context, p access.Principal, in Reviewed) (admin.Review, func(), error) {
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return admin.Review{}, nil, err
	}
	r, err := s.Admin.Review(ctx, grant.Ref{Tenant: p.Tenant, Skill: in.Skill, Script: in.Script, AllScripts: in.AllScripts})
	if err != nil {
		done()
		return admin.Review{}, nil, err
	}
	return r, done, nil
}

func (s *server) review(ctx context.Context, p access.Principal, in *struct {
	Reviewed
	Content bool `query:"content" doc:"with the files' contents"`
}) (*answer[client.Review], error) {
	r, done, err := s.reviewed(ctx, p, in.Reviewed)
	if err != nil {
		return nil, err
	}
	defer done()
	changes, size := toChanges(r), int64(0)
	if in.Content {
		_, size = r.Content.Size()
	}
	if err := s.going(ctx, p.Tenant, size+sizeOf(changes)); err != nil {
		return nil, err
	}
	out := client.Review{Ref: toRef(r.Ref), Digest: r.Content.Digest(), Files: toFiles(r.Content, in.Content), Changes: changes, Risks: []client.Diagnostic{}}
	if r.Granted.ID != "" {
		g := toGrant(r.Granted)
		out.Granted = &g
	}
	if one, err := skill.FromBundle(r.Ref.Skill, r.Content); err == nil { // else the gate content says so
		for _, d := range skill.Lint(one) {
			if d.Risk() {
				out.Risks = append(out.Risks, toDiagnostics([]skill.Diagnostic{d})...)
			}
		}
	}
	return &answer[client.Review]{out}, nil
}

func toChanges(r admin.Review) []client.Change {
	list := []client.Change{}
	for _, c := range r.Changes {
		list = append(list, toChange(c))
	}
	return list
}

func (s *server) difference(ctx context.Context, p access.Principal, in *struct{ Reviewed }) (*answer[client.Difference], error) {
	r, done, err := s.reviewed(ctx, p, in.Reviewed)
	if err != nil {
		return nil, err
	}
	defer done()
	if r.Granted.ID == "" {
		return nil, notFound()
	}
	changes := toChanges(r)
	if err := s.going(ctx, p.Tenant, sizeOf(changes)); err != nil {
		return nil, err
	}
	return &answer[client.Difference]{client.Difference{Granted: toGrant(r.Granted), Changes: changes}}, nil
}

func (s *server) explain(ctx context.Context, p access.Principal, in *struct{ Body client.Explain }) (*answer[client.Explained], error) {
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	verdicts, err := s.Runner.Explain(ctx, gate.Call{Tenant: p.Tenant, Actor: p.Actor, Skill: in.Body.Skill, Script: in.Body.Script, Arguments: in.Body.Arguments})
	if err != nil {
		return nil, err
	}
	out := client.Explained{Admitted: true, Gates: []client.Verdict{}}
	for _, v := range verdicts {
		out.Admitted = out.Admitted && v.Answer == gate.Yes
		out.Gates = append(out.Gates, s.toVerdict(ctx, v))
	}
	return &answer[client.Explained]{out}, nil
}

// hosts are what a tenant is told of the gates that look at the host: what the gates
// themselves say names its programs, its folders and its walls.
var hosts = map[gate.Name]map[gate.Answer]client.Verdict{
	gate.InterpreterGate: {
		gate.Yes: {Detail: "the host and the tenant's policy allow the script's interpreter"},
		gate.No: {Detail: "the host's allow-list, or the tenant's policy, does not let the script's interpreter run",
			Remedy: "add its extension to the policy, or ask the platform's operator to list it"},
	},
	gate.TierGate: {
		gate.Yes: {Detail: "the executor stands as high as the grant and the policy ask"},
		gate.No: {Detail: "the executor stands lower than the grant or the policy asks, or a wall does not stand that is asked for",
			Remedy: "ask the platform's operator, who sees the posture"},
	},
	gate.ContentGate: {
		gate.No: {Detail: "the skill's files cannot be used as they are", Remedy: "lint the skill: it says what is amiss"},
	},
}

func (s *server) toVerdict(ctx context.Context, v gate.Verdict) client.Verdict {
	out := client.Verdict{Gate: string(v.Gate), Answer: string(v.Answer), Detail: v.Detail, Remedy: v.Remedy}
	if v.Answer == gate.Failed {
		s.Logger.ErrorContext(ctx, "a gate could not be asked", "request", RequestID(ctx), "gate", v.Gate, "err", v.Detail)
		out.Detail, out.Remedy = "it could not be found out", "ask the platform's operator, whose log tells more"
	}
	if told, ok := hosts[v.Gate][v.Answer]; ok {
		out.Detail, out.Remedy = told.Detail, told.Remedy
	}
	return out
}
