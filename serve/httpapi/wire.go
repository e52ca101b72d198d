package httpapi

import (
	"strings"
	"unicode/utf8"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/textdiff"
	"github.com/tracon-go/tracon/serve/httpapi/client"
	"github.com/tracon-go/tracon/serve/internal/params"
	"github.com/tracon-go/tracon/skill"
)

// What is kept, as the wire has it.

func versionTag(v admin.Version) string { return params.ETag("skill", v.Tenant, v.Skill, v.ID) }

func toVersion(v admin.Version) client.Version {
	return client.Version{ID: v.ID, Tenant: v.Tenant, Skill: v.Skill, Digest: v.Digest, Stored: v.Stored, Source: shown(v.Source), Reason: v.Reason,
		Imported: v.Imported, By: v.By, Deleted: v.Deleted}
}

func toFiles(b bundle.Bundle, content bool) []client.File {
	list := []client.File{}
	for _, path := range b.Paths() {
		text, digest, _ := b.Text(path)
		f := client.File{Path: path, Size: int64(len(text)), Digest: digest}
		switch {
		case !content:
		case utf8.ValidString(text) && !strings.ContainsRune(text, 0):
			f.Text = &text
		default:
			f.Data = []byte(text)
		}
		list = append(list, f)
	}
	return list
}

func toScripts(scripts []skill.Script) []client.Script {
	list := []client.Script{}
	for _, sc := range scripts {
		list = append(list, client.Script{Path: sc.Path, Extension: sc.Extension, Mode: string(sc.Declaration.Mode), Declared: sc.Declared,
			Description: sc.Declaration.Description, Schema: sc.Declaration.Schema})
	}
	return list
}

func toDiagnostics(diagnostics []skill.Diagnostic) []client.Diagnostic {
	list := []client.Diagnostic{}
	for _, d := range diagnostics {
		list = append(list, client.Diagnostic{Severity: string(d.Severity), Code: d.Code, Path: d.Path, Line: d.Line, Text: d.Text, Remedy: d.Remedy})
	}
	return list
}

func toChange(c bundle.Change) client.Change {
	return client.Change{Path: c.Path, Kind: c.Kind(), Difference: textdiff.Unified(c.Path, c.Old, c.New)}
}
