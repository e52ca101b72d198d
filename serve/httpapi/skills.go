package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
	"github.com/tracon-go/tracon/skill"
)

func (s *server) skillRoutes() {
	read := func(id, path, summary string) operation {
		return operation{id: id, method: http.MethodGet, path: path, tag: "skills", summary: summary, need: may(access.ReadSkills)}
	}
	binary := func(kind, what string) map[string]*huma.Response {
		return map[string]*huma.Response{"200": {Description: what, Content: map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}
	}
	route(s, read("list-skills", "/v1/skills", "The skills that the tenant has, by name"), s.listSkills)
	route(s, read("get-skill", "/v1/skills/{skill}", "A skill: its files, scripts and digest, and what is amiss"), s.getSkill)
	route(s, read("list-scripts", "/v1/skills/{skill}/scripts", "The scripts of a skill, and how they take their arguments"), s.listScripts)
	route(s, read("skill-history", "/v1/skills/{skill}/history", "The versions of an imported skill, the newest first"), s.history)
	route(s, read("diff-skill", "/v1/skills/{skill}/diff", "What changed between two versions; without them, since the one before the newest"), s.diffSkill)
	route(s, read("lint-skill", "/v1/skills/{skill}/lint", "What is amiss with a skill, strictly, and what a reviewer should look at"), s.lintSkill)
	file := read("get-file", "/v1/skills/{skill}/file", "One file of a skill, as an attachment")
	file.answers = binary("application/octet-stream", "the bytes")
	route(s, file, s.getFile)
	export := read("export-skill", "/v1/skills/{skill}/export", "A skill as a zip archive, which imports with the same digest")
	export.answers = binary("application/zip", "the archive")
	route(s, export, s.exportSkill)
	route(s, operation{id: "delete-skill", method: http.MethodDelete, path: "/v1/skills/{skill}", tag: "skills", summary: "Take an imported skill away; its history stays", change: true,
		need: may(access.WriteSkills)}, s.deleteSkill)
}

func (s *server) listSkills(ctx context.Context, p access.Principal, in *struct{ params.Paging }) (*answer[client.Page[client.SkillSummary]], error) {
	list := params.ListOf(p.Tenant, "list-skills")
	after, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	imported, err := s.Admin.Skills(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	all := []client.SkillSummary{}
	for _, v := range imported {
		version := toVersion(v)
		all = append(all, client.SkillSummary{Name: v.Skill, Imported: &version})
	}
	if s.Folders != nil {
		for _, f := range s.Folders.List() {
			if !slices.ContainsFunc(imported, func(v admin.Version) bool { return v.Skill == f.Name }) { // it stands before the folder's
				all = append(all, client.SkillSummary{Name: f.Name, Description: f.Description, Scripts: f.Scripts})
			}
		}
	}
	slices.SortFunc(all, func(a, b client.SkillSummary) int { return strings.Compare(a.Name, b.Name) })
	page := client.Page[client.SkillSummary]{Items: []client.SkillSummary{}}
	for _, one := range all {
		if after != "" && one.Name <= after {
			continue
		}
		if len(page.Items) == in.Limit {
			page.Next = params.NewCursor(list, page.Items[in.Limit-1].Name)
			break
		}
		page.Items = append(page.Items, one)
	}
	return &answer[client.Page[client.SkillSummary]]{page}, nil
}

// read reads the tenant's skill: as it is now, or as that version was.
func (s *server) read(ctx context.Context, tenant, name, word string) (bundle.Bundle, *admin.Version, error) {
	if err := grant.CheckName("skill", name); err != nil {
		return bundle.Bundle{}, nil, err
	}
	v, imported, err := s.versionOf(ctx, tenant, name, word)
	switch {
	case err != nil:
		return bundle.Bundle{}, nil, err
	case word != "":
		b, err := s.Store.Content(ctx, tenant, v.Digest)
		return b, &v, err
	}
	host, err := s.Admin.Host(ctx)
	if err != nil {
		return bundle.Bundle{}, nil, err
	}
	b, err := s.Contents.Read(ctx, tenant, name, host.Content)
	if err != nil || !imported {
		return b, nil, err
	}
	return b, &v, nil
}

func (s *server) getSkill(ctx context.Context, p access.Principal, in *struct {
	Skill   string `path:"skill" maxLength:"512"`
	Version string `query:"version" maxLength:"80" doc:"beginning of a version's id or digest; none: as it is now"`
	Content bool   `query:"content" doc:"with the files' contents"`
}) (*tagged[client.Skill], error) {
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	b, v, err := s.read(ctx, p.Tenant, in.Skill, in.Version)
	if err != nil {
		return nil, err
	}
	if _, size := b.Size(); in.Content {
		if err := s.going(ctx, p.Tenant, size); err != nil {
			return nil, err
		}
	}
	out := client.Skill{Meta: client.Meta{Name: in.Skill}, Digest: b.Digest(), Files: toFiles(b, in.Content), Scripts: []client.Script{}, Diagnostics: []client.Diagnostic{}}
	var tag string
	if v != nil {
		version := toVersion(*v)
		out.Imported, tag = &version, versionTag(*v)
	}
	one, err := skill.FromBundle(in.Skill, b)
	if broken, ok := errors.AsType[*skill.BrokenError](err); ok {
		out.Diagnostics = toDiagnostics(broken.Diagnostics)
		return &tagged[client.Skill]{tag, out}, nil
	}
	if err != nil {
		return nil, err
	}
	out.Meta = client.Meta{Name: one.Name, Description: one.Description, License: one.License, Compatibility: one.Compatibility, AllowedTools: one.AllowedTools, Metadata: one.Metadata}
	out.Scripts, out.Diagnostics = toScripts(one.Scripts), toDiagnostics(one.Diagnostics)
	return &tagged[client.Skill]{tag, out}, nil
}

func (s *server) listScripts(ctx context.Context, p access.Principal, in *struct {
	params.Paging
	Skill string `path:"skill" maxLength:"512"`
}) (*answer[client.Page[client.Script]], error) {
	list := params.ListOf(p.Tenant, "list-scripts", in.Skill)
	after, err := params.ReadCursor(list, in.Cursor)
	if err != nil {
		return nil, err
	}
	one, err := s.whole(ctx, p.Tenant, in.Skill)
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Script]{Items: []client.Script{}}
	for _, script := range toScripts(one.Scripts) {
		if after != "" && script.Path <= after {
			continue
		}
		if len(page.Items) == in.Limit {
			page.Next = params.NewCursor(list, page.Items[in.Limit-1].Path)
			break
		}
		page.Items = append(page.Items, script)
	}
	return &answer[client.Page[client.Script]]{page}, nil
}

// whole reads the skill as it is now, with what it says of itself.
func (s *server) whole(ctx context.Context, tenant, name string) (skill.Skill, error) {
	done, err := s.heavy(ctx, tenant)
	if err != nil {
		return skill.Skill{}, err
	}
	defer done()
	b, _, err := s.read(ctx, tenant, name, "")
	if err != nil {
		return skill.Skill{}, err
	}
	return skill.FromBundle(name, b)
}

func (s *server) lintSkill(ctx context.Context, p access.Principal, in *struct {
	Skill string `path:"skill" maxLength:"512"`
}) (*answer[client.Lint], error) {
	one, err := s.whole(ctx, p.Tenant, in.Skill)
	if broken, ok := errors.AsType[*skill.BrokenError](err); ok {
		return &answer[client.Lint]{client.Lint{Diagnostics: toDiagnostics(broken.Diagnostics)}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &answer[client.Lint]{client.Lint{Diagnostics: toDiagnostics(skill.Lint(one))}}, nil
}

func (s *server) deleteSkill(ctx context.Context, p access.Principal, in *struct {
	params.IfMatch
	Skill  string `path:"skill" maxLength:"512"`
	Reason string `query:"reason" maxLength:"4096"`
}) (*answer[client.Version], error) {
	m, err := in.Match()
	if err != nil {
		return nil, err
	}
	v, found, err := s.versionOf(ctx, p.Tenant, in.Skill, "")
	if err != nil || !found {
		return nil, orNotFound(err)
	}
	if err := m.Check(versionTag(v)); err != nil {
		return nil, err
	}
	after := v.ID
	if m.Any() {
		after = ""
	}
	gone, err := s.Admin.DeleteSkillAfter(ctx, p.Actor, p.Tenant, in.Skill, in.Reason, after)
	if errors.Is(err, grant.ErrConflict) && after != "" {
		err = params.ErrPrecondition
	}
	if err != nil {
		return nil, err
	}
	return &answer[client.Version]{toVersion(gone)}, nil
}

// streamed is an answer that is written piece by piece, and that no browser shows.
type streamed struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	ETag        string `header:"ETag"`
	Body        func(huma.Context)
}

func (s *server) getFile(ctx context.Context, p access.Principal, in *struct {
	Skill   string `path:"skill" maxLength:"512"`
	Path    string `query:"path" required:"true" minLength:"1" maxLength:"512" doc:"exactly as the skill lists it"`
	Version string `query:"version" maxLength:"80" doc:"beginning of a version's id or digest; none: as it is now"`
}) (*streamed, error) {
	b, err := s.readInTurn(ctx, p.Tenant, in.Skill, in.Version)
	if err != nil {
		return nil, err
	}
	text, digest, ok := b.Text(in.Path)
	if !ok {
		return nil, notFound()
	}
	if err := s.going(ctx, p.Tenant, int64(len(text))); err != nil {
		return nil, err
	}
	return &streamed{ContentType: "application/octet-stream", Disposition: "attachment", ETag: params.ETag("file", digest.String()),
		Body: func(c huma.Context) { _, _ = c.BodyWriter().Write([]byte(text)) }}, nil
}

func (s *server) exportSkill(ctx context.Context, p access.Principal, in *struct {
	Skill   string `path:"skill" maxLength:"512"`
	Version string `query:"version" maxLength:"80" doc:"beginning of a version's id or digest; none: as it is now"`
}) (*streamed, error) {
	if err := s.going(ctx, p.Tenant, maxZip); err != nil { // before it is read: its size is not known
		return nil, err
	}
	b, err := s.readInTurn(ctx, p.Tenant, in.Skill, in.Version)
	if err == nil {
		if _, err = b.ReadFile("SKILL.md"); err != nil {
			err = problem(client.BadContent, "a single stored script has no folder to export; get its file")
		}
	}
	if err != nil {
		return nil, err
	}
	return &streamed{ContentType: "application/zip", Disposition: "attachment", ETag: params.ETag("content", b.Digest().String()), Body: func(c huma.Context) {
		if err := skill.WriteZip(c.BodyWriter(), b); err != nil {
			// It was begun: the connection is closed, so that nobody takes a part for the whole.
			r, _ := humago.Unwrap(c)
			s.Logger.Info("an archive was not taken whole", "request", RequestID(r.Context()), "err", err)
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// readInTurn is read in a turn of the tenant.
func (s *server) readInTurn(ctx context.Context, tenant, name, word string) (bundle.Bundle, error) {
	done, err := s.heavy(ctx, tenant)
	if err != nil {
		return bundle.Bundle{}, err
	}
	defer done()
	b, _, err := s.read(ctx, tenant, name, word)
	return b, err
}
