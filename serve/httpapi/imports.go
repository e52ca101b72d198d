package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/spool"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/skill"
)

// Bounds of what is uploaded. A zip archive is never larger than what it holds and its
// names: 32 MiB by default.
const (
	maxZip     = 48 << 20
	maxFiles   = 16 << 20 // of JSON, with the files in base64: larger ones come as a zip archive
	uploadTime = 10 * time.Minute
)

func (s *server) importRoutes() {
	add := func(id, path, summary string) operation {
		return operation{id: id, method: http.MethodPost, path: path, tag: "skills", summary: summary, status: http.StatusCreated, need: may(access.WriteSkills),
			about: "It becomes the newest version of its skill; the versions before it stay in the history. It grants nothing. What is the newest already is not kept again.", maxBody: maxFiles, large: true}
	}
	zip := add("import-zip", "/v1/imports/zip", "Import a skill from a zip archive")
	zip.maxBody, zip.raw = maxZip, true
	zip.body = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/zip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	route(s, zip, s.importZip)
	route(s, add("import-files", "/v1/imports/files", "Import a skill from its files"), s.importFiles)
	route(s, add("import-script", "/v1/imports/script", "Import a single script as a skill of its own"), s.importScript)
}

func (s *server) importZip(ctx context.Context, p access.Principal, in *struct {
	Source string `query:"source" maxLength:"4096" doc:"where it came from, for information"`
	Reason string `query:"reason" maxLength:"4096"`
}) (*tagged[client.Imported], error) {
	c := callOf(ctx)
	archive, size, err := s.upload(c.writer, c.request)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	limits, err := s.limits(ctx)
	if err != nil {
		return nil, err
	}
	aside := spool.New(s.spool(), limits)
	defer aside.Close()
	o, content, err := skill.ReadZipInto(archive, size, limits, aside)
	return s.imported(ctx, p, o, content, err, admin.Importing{Source: in.Source, Reason: in.Reason})
}

func (s *server) importFiles(ctx context.Context, p access.Principal, in *struct{ Body client.FilesImport }) (*tagged[client.Imported], error) {
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	limits, err := s.limits(ctx)
	if err != nil {
		return nil, err
	}
	files := make([]bundle.File, 0, len(in.Body.Files))
	for _, f := range in.Body.Files {
		files = append(files, bundle.File{Path: f.Path, Data: f.Data})
	}
	one, err := skill.FromFiles(files, limits)
	return s.imported(ctx, p, one.Outline, one.Bundle, err, admin.Importing{Source: in.Body.Source, Reason: in.Body.Reason})
}

func (s *server) importScript(ctx context.Context, p access.Principal, in *struct{ Body client.ScriptImport }) (*tagged[client.Imported], error) {
	done, err := s.heavy(ctx, p.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	b := in.Body
	d := gate.Declaration{Mode: gate.Mode(b.Mode), Description: b.Description, Schema: b.Schema}
	content, err := skill.Stored(b.Script, b.Data, d)
	return s.imported(ctx, p, skill.Outline{Meta: skill.Meta{Name: b.Skill}}, content, err, admin.Importing{Source: b.Source, Reason: b.Reason, Stored: true})
}

// imported keeps what was read. A skill that could not run is not kept, so that nothing
// is granted unseen.
func (s *server) imported(ctx context.Context, p access.Principal, o skill.Outline, content bundle.Content, err error, i admin.Importing) (*tagged[client.Imported], error) {
	if err == nil && len(o.Errors()) > 0 {
		err = &skill.BrokenError{Folder: o.Name, Diagnostics: o.Errors()}
	}
	if err != nil {
		return nil, refusedContent(err)
	}
	i.Actor, i.Tenant, i.Skill, i.Content = p.Actor, p.Tenant, o.Name, content
	v, err := s.Admin.Import(ctx, i)
	if err != nil {
		return nil, refusedContent(err)
	}
	out := client.Imported{Version: toVersion(v), Diagnostics: toDiagnostics(o.Diagnostics)}
	out.Files, out.Bytes = content.Listing().Size()
	return &tagged[client.Imported]{versionTag(v), out}, nil
}

// refusedContent tells what is wrong with content that was sent: its text is about
// nothing else.
func refusedContent(err error) error {
	if !errors.Is(err, bundle.ErrContent) {
		return err
	}
	p := problem(client.BadContent, err.Error())
	if broken, ok := errors.AsType[*skill.BrokenError](err); ok {
		p.Detail = "the skill cannot be used"
		for _, d := range broken.Diagnostics[:min(20, len(broken.Diagnostics))] {
			p.Errors = append(p.Errors, client.Wrong{Location: d.Path, Message: d.String()})
		}
	}
	return p
}

// limits are the host's, of content.
func (s *server) limits(ctx context.Context) (bundle.Limits, error) {
	h, err := s.Admin.Host(ctx)
	return h.Content, err
}

func (s *server) spool() string {
	if s.Spool == "" {
		return os.TempDir()
	}
	return s.Spool
}

// upload puts the body aside in a file that has no name, so that nothing is left when
// the process dies. (On Windows it has one until it is closed.)
func (s *server) upload(w http.ResponseWriter, r *http.Request) (f *unnamed, size int64, err error) {
	made, err := os.CreateTemp(s.spool(), "upload-*")
	if err != nil {
		return nil, 0, err
	}
	f = &unnamed{File: made, named: os.Remove(made.Name()) != nil}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(uploadTime))
	size, err = io.Copy(writeOnly{made}, r.Body)
	_ = control.SetReadDeadline(time.Time{})
	if err == nil {
		return f, size, nil
	}
	f.Close()
	if _, ok := errors.AsType[*os.PathError](err); ok { // of our file, not of the client's body
		return nil, 0, err
	}
	return nil, 0, bodyProblem(err)
}

// writeOnly keeps io.Copy from a shortcut that would hide whose error it is.
type writeOnly struct{ io.Writer }

type unnamed struct {
	*os.File
	named bool
}

// Close forgets the file.
func (u *unnamed) Close() {
	_ = u.File.Close()
	if u.named {
		_ = os.Remove(u.File.Name())
	}
}
