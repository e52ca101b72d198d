package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/spool"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/skill"
)

func (r *remote) Skills(ctx context.Context) (skillsJSON, error) {
	list, err := r.c.Skills(ctx)
	if err != nil {
		return skillsJSON{}, r.told(ctx, err, nil)
	}
	j := skillsJSON{[]admin.Version{}, []summaryJSON{}, []skill.Diagnostic{}}
	for _, s := range list {
		if s.Imported != nil {
			j.Imported = append(j.Imported, admin.Version(*s.Imported))
			continue
		}
		j.Skills = append(j.Skills, summaryJSON{Meta: skill.Meta{Name: s.Name, Description: s.Description}, Scripts: append([]string{}, s.Scripts...), Diagnostics: []skill.Diagnostic{}})
	}
	return j, nil
}

func (r *remote) Skill(ctx context.Context, word string) (skillJSON, error) {
	s, _, err := r.c.Skill(ctx, word, "", false)
	if err != nil {
		return skillJSON{}, r.told(ctx, err, hint(noSkill(word), "`tracon skill list` lists the known ones"))
	}
	j := skillJSON{Meta: skill.Meta(s.Meta), Digest: s.Digest, Files: ofFiles(s.Files), Scripts: []scriptJSON{}, Diagnostics: ofDiagnostics(s.Diagnostics)}
	for _, sc := range s.Scripts {
		sj := scriptJSON{Path: sc.Path, Extension: sc.Extension, Mode: sc.Mode, Declared: sc.Declared, Description: sc.Description}
		if len(sc.Schema) > 0 {
			sj.Schema = sc.Schema
		}
		j.Scripts = append(j.Scripts, sj)
	}
	return j, nil
}

func (r *remote) Lint(ctx context.Context, word string) ([]skill.Diagnostic, error) {
	l, err := r.c.Lint(ctx, word)
	return ofDiagnostics(l.Diagnostics), r.told(ctx, err, hint(noSkill(word), "`tracon skill list` lists the known ones"))
}

func (r *remote) Declare(ctx context.Context, name, script string) (gate.Declaration, error) {
	unknown := fmt.Errorf("%w: script %q", gate.ErrUnknown, script)
	s, _, err := r.c.Skill(ctx, name, "", false)
	if err != nil {
		return gate.Declaration{}, r.told(ctx, err, unknown)
	}
	for _, sc := range s.Scripts {
		if sc.Path != script {
			continue
		}
		d := gate.Declaration{Description: sc.Description, Mode: gate.Mode(sc.Mode), Schema: sc.Schema, Flags: map[string]gate.Flag{}}
		for member, f := range sc.Flags {
			d.Flags[member] = gate.Flag(f)
		}
		return d, nil
	}
	return gate.Declaration{}, unknown
}

func (r *remote) Spool() *spool.Spool { return spool.New(r.folder, r.limits) }

func (r *remote) Limits() bundle.Limits { return r.limits }

// Import sends the content as a zip file, as it is read: it is nowhere whole.
func (r *remote) Import(ctx context.Context, i admin.Importing) (admin.Version, error) {
	if i.Stored {
		return r.importScript(ctx, i)
	}
	files, bytes := i.Content.Listing().Size()
	bar := r.progress(fmt.Sprintf("bytes sent, of about %d in %d files", bytes, files))
	defer bar.done()
	archive, w := io.Pipe()
	go func() { w.CloseWithError(skill.WriteZip(w, i.Content)) }()
	defer archive.Close() // the writer ends, whatever the server has read
	v, err := r.c.ImportZip(ctx, &counted{r: archive, show: bar.show}, "", i.Reason)
	if err != nil {
		return admin.Version{}, r.told(ctx, err, nil)
	}
	return admin.Version(v.Version), nil
}

func (r *remote) importScript(ctx context.Context, i admin.Importing) (admin.Version, error) {
	paths := i.Content.Listing().Paths()
	if len(paths) != 1 {
		return admin.Version{}, fmt.Errorf("%w: a stored script is one file", bundle.ErrContent)
	}
	data, err := bundle.Read(i.Content, paths[0])
	if err != nil {
		return admin.Version{}, err
	}
	b, err := bundle.New([]bundle.File{{Path: paths[0], Data: data}}, i.Content.Listing().Declaration(), r.limits)
	if err != nil {
		return admin.Version{}, err
	}
	d, err := new(skill.Declarations).Declare(b, paths[0])
	if err != nil {
		return admin.Version{}, err
	}
	v, err := r.c.ImportScript(ctx, client.ScriptImport{Skill: i.Skill, Script: paths[0], Data: data, Mode: string(d.Mode), Schema: d.Schema, Description: d.Description, Reason: i.Reason})
	if err != nil {
		return admin.Version{}, r.told(ctx, err, nil)
	}
	return admin.Version(v.Version), nil
}

func (r *remote) Versions(ctx context.Context, name string) ([]admin.Version, error) {
	list, err := r.c.History(ctx, name)
	versions := []admin.Version{}
	for _, v := range list {
		versions = append(versions, admin.Version(v))
	}
	if missing := fmt.Errorf("%w: skill %s", grant.ErrNotFound, name); err != nil && r.told(ctx, err, missing) == missing {
		return versions, nil // it never had one of that name
	}
	return versions, r.told(ctx, err, nil)
}

func (r *remote) Content(ctx context.Context, aside *spool.Spool, v admin.Version) (bundle.Content, error) {
	c, err := r.content(ctx, aside, v.Skill, v.ID)
	if err == nil && c.Listing().Digest() != v.Digest {
		err = fmt.Errorf("%w: the server sent %s for the version %s, which has %s", bundle.ErrContent, c.Listing().Digest(), v.ID, v.Digest)
	}
	return c, err
}

// content gets the skill as a zip file, which waits in a file of its own: an archive
// is read from its end.
func (r *remote) content(ctx context.Context, aside *spool.Spool, name, version string) (bundle.Content, error) {
	f, err := os.CreateTemp(r.folder, "tracon-*.zip")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	bar := r.progress("bytes of " + harmless(name, false))
	defer bar.done()
	w := &bounded{w: f, left: r.limits.OrDefaults().TotalBytes + maxArchive, show: bar.show}
	if err := r.c.ExportSkill(ctx, name, version, w); err != nil {
		return nil, r.told(ctx, err, noSkill(name))
	}
	_, c, err := skill.ReadZipInto(f, w.wrote, r.limits, aside)
	return c, err
}

// InFolder returns nothing: what lies in the server's folders is among its skills.
func (r *remote) InFolder(*spool.Spool, string) (bundle.Content, bool, error) { return nil, false, nil }

func (r *remote) DeleteSkill(ctx context.Context, name, reason string) (admin.Version, error) {
	v, err := r.c.DeleteSkill(ctx, name, "", reason)
	return admin.Version(v), r.told(ctx, err, fmt.Errorf("%w: tenant %q has no imported skill %q", grant.ErrNotFound, r.tenant, name))
}

// maxArchive is what an archive may have besides the files.
const maxArchive = 4 << 20

// counted tells how much was read.
type counted struct {
	r    io.Reader
	n    uint64
	show func(uint64)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += uint64(n)
	c.show(c.n)
	return n, err
}

// bounded writes no more than it may, and tells how much.
type bounded struct {
	w           io.Writer
	left, wrote int64
	show        func(uint64)
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, fmt.Errorf("%w: the server sent more than a skill may have", bundle.ErrContent)
	}
	n, err := b.w.Write(p)
	b.left -= int64(n)
	b.wrote += int64(n)
	b.show(uint64(b.wrote))
	return n, err
}

func ofFiles(list []client.File) []fileJSON {
	files := []fileJSON{}
	for _, f := range list {
		j := fileJSON{Path: f.Path, Size: int(f.Size), Digest: f.Digest, Text: f.Text}
		if f.Data != nil {
			j.Text = new(string(f.Data))
		}
		files = append(files, j)
	}
	return files
}

func ofChanges(list []client.Change) []changeJSON {
	changes := []changeJSON{}
	for _, c := range list {
		changes = append(changes, changeJSON(c))
	}
	return changes
}

func ofDiagnostics(list []client.Diagnostic) []skill.Diagnostic {
	diagnostics := []skill.Diagnostic{}
	for _, d := range list {
		diagnostics = append(diagnostics, skill.Diagnostic{Severity: skill.Severity(d.Severity), Code: d.Code, Path: d.Path, Line: d.Line, Text: d.Text, Remedy: d.Remedy})
	}
	return diagnostics
}
