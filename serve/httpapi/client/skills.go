package client

import (
	"encoding/json"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// A Version is one state of a skill that was imported for the tenant.
type Version struct {
	ID       string        `json:"id"`
	Tenant   string        `json:"tenant" doc:"the credential's"`
	Skill    string        `json:"skill"`
	Digest   bundle.Digest `json:"digest,omitzero" required:"false" doc:"of the content; none for a deletion"`
	Stored   bool          `json:"stored,omitempty" doc:"a single stored script, not a folder"`
	Source   string        `json:"source,omitempty" doc:"where it came from, for information"`
	Reason   string        `json:"reason,omitempty"`
	Imported time.Time     `json:"imported"`
	By       string        `json:"by"`
	Deleted  bool          `json:"deleted,omitempty" doc:"from here on the tenant has no such skill"`
}

// Meta is what the frontmatter of a skill's SKILL.md says.
type Meta struct {
	Name          string            `json:"name"`
	Description   string            `json:"description,omitempty"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	AllowedTools  []string          `json:"allowedTools,omitempty" nullable:"false" doc:"informs; grants nothing"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// A SkillSummary is what a list shows of a skill.
type SkillSummary struct {
	Name        string   `json:"name"`
	Imported    *Version `json:"imported,omitempty" doc:"the newest version; none: it lies in a folder of the host, for all tenants"`
	Description string   `json:"description,omitempty" doc:"of those in folders"`
	Scripts     []string `json:"scripts,omitempty" nullable:"false" doc:"of those in folders"`
}

// A Skill is a skill as it is now.
type Skill struct {
	Meta
	Imported    *Version      `json:"imported,omitempty" doc:"the newest version; none: it lies in a folder of the host, for all tenants"`
	Digest      bundle.Digest `json:"digest"`
	Files       []File        `json:"files" nullable:"false"`
	Scripts     []Script      `json:"scripts" nullable:"false"`
	Diagnostics []Diagnostic  `json:"diagnostics" nullable:"false"`
}

// A Script is a file of a skill that an interpreter may run.
type Script struct {
	Path        string          `json:"path"`
	Extension   string          `json:"extension"`
	Mode        string          `json:"mode" doc:"how it takes its arguments: stdin, argv, flags or none"`
	Declared    bool            `json:"declared" doc:"it stands in tracon.yaml"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of its arguments"`
	Flags       map[string]Flag `json:"flags,omitempty" doc:"of the mode flags: how members of the object become words, where it is not --name"`
}

// A Flag says how one member of the object that a flags script takes becomes words.
type Flag struct {
	Flag     string `json:"flag,omitempty" doc:"such as -v; none: -- and the member's name"`
	Position int    `json:"position,omitempty" doc:"from 1: the value stands alone at this place behind the flags"`
}

// An Imported is what came of an import.
type Imported struct {
	Version     Version      `json:"version"`
	Files       int          `json:"files"`
	Bytes       int64        `json:"bytes"`
	Diagnostics []Diagnostic `json:"diagnostics" nullable:"false" doc:"what was bent, and what should be mended"`
}

// An Upload is a file that is sent.
type Upload struct {
	Path string `json:"path" minLength:"1" maxLength:"512"`
	Data []byte `json:"data" doc:"in base64"`
}

// A FilesImport is a skill as a list of files, SKILL.md among them.
type FilesImport struct {
	Files  []Upload `json:"files" minItems:"1" maxItems:"2048" nullable:"false"`
	Source string   `json:"source,omitempty" maxLength:"4096" doc:"where it came from, for information"`
	Reason string   `json:"reason,omitempty" maxLength:"4096"`
}

// A ScriptImport is a single script, which becomes a skill of its own.
type ScriptImport struct {
	Skill       string          `json:"skill" minLength:"1" maxLength:"512" doc:"the name that it gets"`
	Script      string          `json:"script" minLength:"1" maxLength:"255" doc:"a plain file name"`
	Data        []byte          `json:"data" doc:"in base64"`
	Mode        string          `json:"mode,omitempty" enum:"stdin,argv,flags,none" doc:"how it takes its arguments; none: stdin"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of its arguments"`
	Description string          `json:"description,omitempty" maxLength:"4096"`
	Source      string          `json:"source,omitempty" maxLength:"4096"`
	Reason      string          `json:"reason,omitempty" maxLength:"4096"`
}

// A VersionDifference is what changed between two versions of a skill.
type VersionDifference struct {
	Old     Version  `json:"old"`
	New     Version  `json:"new"`
	Changes []Change `json:"changes" nullable:"false"`
}

// A Lint says what is amiss with a skill.
type Lint struct {
	Diagnostics []Diagnostic `json:"diagnostics" nullable:"false" doc:"the errors first; those with a code that begins with risk- are for who reviews"`
}
