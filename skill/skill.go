package skill

import (
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A Severity says how bad a Diagnostic is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the skill, or what is named, cannot be used
	Warning Severity = "warning" // it is used, and something should be mended
	Note    Severity = "note"    // it is used; for information
)

// A Diagnostic says what is amiss, where, and what to do.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`           // which kind, for programs; it never changes; see [Diagnostic.Risk]
	Path     string   `json:"path"`           // in the skill, such as "SKILL.md"; of a library: the path on the host
	Line     int      `json:"line,omitempty"` // from 1; zero: the whole file
	Text     string   `json:"text"`
	Remedy   string   `json:"remedy,omitempty"`
}

// Risk reports whether d tells of a risk sign, which is information for who
// reviews the skill and no fault: its code begins with "risk-".
func (d Diagnostic) Risk() bool { return strings.HasPrefix(d.Code, "risk-") }

// String returns all of d in one line, with no character that steers a terminal.
func (d Diagnostic) String() string {
	at := d.Path
	if d.Line > 0 {
		at = fmt.Sprintf("%s:%d", d.Path, d.Line)
	}
	s := fmt.Sprintf("%s: %s (%s)", d.Severity, d.Text, at)
	if d.Remedy != "" {
		s += "; " + d.Remedy
	}
	return visible(s)
}

// A Meta is what the frontmatter of SKILL.md says.
type Meta struct {
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	AllowedTools  []string          `json:"allowedTools,omitempty"` // informs; grants nothing
	Metadata      map[string]string `json:"metadata,omitempty"`     // values that are no text are kept as JSON
}

// An Outline is what the files of a skill say of it, without their bytes.
type Outline struct {
	Meta
	Folder       string       // as it was named to us
	Instructions string       // SKILL.md behind the frontmatter
	Scripts      []Script     // in the bytewise order of their paths
	Diagnostics  []Diagnostic // the errors first
}

// A Skill is a skill as its folder was when it was read.
type Skill struct {
	Outline
	Bundle bundle.Bundle // every byte that a script of it can see
}

// A Script is a file of a skill that an interpreter may run.
type Script struct {
	Path        string
	Extension   string // the entry of an allow-list that it falls under, such as "py"; see [gate.Extension]
	Declared    bool   // it stands in tracon.yaml
	Declaration gate.Declaration
}

// Errors returns the diagnostics that are errors.
func (o Outline) Errors() []Diagnostic { return errorsOf(o.Diagnostics) }

func errorsOf(all []Diagnostic) []Diagnostic {
	var errs []Diagnostic
	for _, d := range all {
		if d.Severity == Error {
			errs = append(errs, d)
		}
	}
	return errs
}

// A BrokenError is for a skill whose SKILL.md or tracon.yaml cannot be used. It
// wraps [bundle.ErrContent].
type BrokenError struct {
	Folder      string       // or the skill's name, where a tenant may read it
	Diagnostics []Diagnostic // the errors; at least one
}

// Error returns the first errors, each with its remedy.
func (e *BrokenError) Error() string {
	var b strings.Builder
	if e.Folder != "" {
		fmt.Fprintf(&b, "skill %s: ", visible(e.Folder))
	}
	for i, d := range e.Diagnostics {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(e.Diagnostics)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(d.String())
	}
	return b.String()
}

// Unwrap returns bundle.ErrContent.
func (e *BrokenError) Unwrap() error { return bundle.ErrContent }
