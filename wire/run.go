package wire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracon-go/tracon/bundle"
)

// Protocol is the name of what the member "tracon" holds, in [Info].Protocols.
const Protocol = "tracon/1"

// Bounds of what is read, and of what is sent.
const (
	MaxRun     = 96 << 20       // bytes of a run's JSON: 32 MiB of inputs in base64, a closure and arguments
	MaxAnswer  = 96 << 20       // bytes of an answer's JSON
	MaxClosure = 64 << 20       // bytes of a closure's JSON
	MaxSmall   = 1 << 20        // bytes of an Info or a Problem
	MaxInline  = 64 << 10       // bytes of all files of a closure that travels within the run; a larger one is uploaded
	MaxTimeout = 24 * time.Hour // of a run
	MaxName    = 512            // bytes of a name
)

// A Run asks for one script to be run. The JSON has the names of R28.
type Run struct {
	Tenant        string `json:"tenant"`
	Runtime       string `json:"runtime"` // a runtime's name, such as "python-3.12"; never a path of a host
	Source        string `json:"source"`  // the script's text. Empty with More, where the closure has it
	SourceSHA256  string `json:"sourceSha256"`
	StandardInput string `json:"standardInput"`

	// TimeoutSeconds is how long the script may run, above zero, with a fraction if
	// need be. MaxOutputBytes is how many bytes of each stream are kept, above zero.
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	MaxOutputBytes int     `json:"maxOutputBytes"`

	// More is what a run has beyond R28; nil to and from a peer that does not know it.
	More *More `json:"tracon,omitempty"`
}

// More is what a run has beyond R28. A zero field asks for nothing.
type More struct {
	ID     string `json:"id"`              // of the run at the host, a UUIDv7: the answer has it again
	Actor  string `json:"actor,omitempty"` // who asked there, for the runner's log
	Grant  string `json:"grant,omitempty"` // of the host's grant, for the runner's log
	Skill  string `json:"skill"`
	Script string `json:"script"` // its exact path in the closure

	// Extension is the entry of the host's allow-list that the script fell under,
	// such as "py". Mode is how it takes its arguments, for the log: what it gets
	// stands in Words and StandardInput.
	Extension string `json:"extension,omitempty"`
	Mode      string `json:"mode"`

	// Bundle is the closure's digest, "sha256:" and 64 hex digits. Required. Files are
	// its files, and Declaration the text that is part of the digest, where the
	// closure is small; without Files it was uploaded.
	Bundle      string `json:"bundle"`
	Files       []File `json:"files,omitempty"`
	Declaration []byte `json:"declaration,omitempty"`

	Words           []string `json:"words,omitempty"`           // after the script's path on its command line
	StandardInput64 []byte   `json:"standardInput64,omitempty"` // for input that is not UTF-8; then StandardInput is empty
	Module          string   `json:"module,omitempty"`          // the Python module that the script is started as
	Inputs          []File   `json:"inputs,omitempty"`          // laid out below inputs/
	OutputPatterns  []string `json:"outputPatterns,omitempty"`  // which files below outputs/ come back; empty: all

	MaxOutputsBytes int64      `json:"maxOutputsBytes,omitempty"` // bytes of all output files; zero: none come back
	MaxOutputFiles  int        `json:"maxOutputFiles,omitempty"`  // number of output files; zero: none come back
	Memory          int64      `json:"memory,omitempty"`          // bytes; zero: the runner's own
	Processes       int        `json:"processes,omitempty"`       // zero: the runner's own
	Network         string     `json:"network,omitempty"`         // "none" or "loopback"; empty: none
	Environment     []Variable `json:"environment,omitempty"`
	Tier            string     `json:"tier,omitempty"`         // wanted at least; empty: any
	RequireWalls    []string   `json:"requireWalls,omitempty"` // that must stand
	Ticket          string     `json:"ticket,omitempty"`       // signed by the host, where the runner asks for one
}

// A File is one of a closure, of the inputs, or of the outputs.
type File struct {
	Path string `json:"path"`
	Data []byte `json:"data"` // base64 in JSON
}

// A Variable of the environment. A list of them has no names of its own that
// folding could change.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ErrMalformed is wrapped by the error for what is not of this wire's form.
var ErrMalformed = errors.New("wire: malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// ReadRun reads one run of at most max bytes; zero means [MaxRun].
//
// # Errors
//
// One that wraps ErrTooLarge, ErrMalformed, or r's own.
func ReadRun(r io.Reader, max int64) (Run, error) {
	var run Run
	if err := read(r, orMost(max, MaxRun), &run); err != nil {
		return Run{}, err
	}
	return run, run.Check()
}

// Encode checks r and returns its JSON.
func (r Run) Encode() ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return encode(r)
}

// Timeout returns how long the script may run.
func (r Run) Timeout() time.Duration {
	return time.Duration(math.Ceil(r.TimeoutSeconds*1e6)) * time.Microsecond
}

// Stdin returns what the script reads on standard input.
func (r Run) Stdin() []byte {
	if r.More != nil && len(r.More.StandardInput64) > 0 {
		return r.More.StandardInput64
	}
	return []byte(r.StandardInput)
}

// Digest returns the SHA-256 that the run says its script has.
func (r Run) Digest() (bundle.Digest, error) {
	b, err := hex.DecodeString(r.SourceSHA256)
	if err != nil || len(b) != len(bundle.Digest{}) {
		return bundle.Digest{}, malformed("sourceSha256 is not 64 hex digits")
	}
	return bundle.Digest(b), nil
}

// Check says what in r is not of this wire's form, or nil. It compares no digest
// with bytes: that is the receiving gate's.
func (r Run) Check() error {
	// Another text would come out at the other end than was signed and hashed here.
	if !utf8.ValidString(r.Source) || !utf8.ValidString(r.StandardInput) || !utf8.ValidString(r.Tenant+r.Runtime) {
		return malformed("a text is not UTF-8")
	}
	for _, f := range []struct{ name, value string }{{"tenant", r.Tenant}, {"runtime", r.Runtime}} {
		if f.value == "" || len(f.value) > MaxName {
			return malformed("%s has %d bytes, want 1 to %d", f.name, len(f.value), MaxName)
		}
	}
	if strings.ContainsAny(r.Runtime, `/\`) {
		return malformed("runtime %q is a path; it is a name, such as python-3.12", r.Runtime)
	}
	if _, err := r.Digest(); err != nil {
		return err
	}
	if !(r.TimeoutSeconds > 0) || r.TimeoutSeconds > MaxTimeout.Seconds() {
		return malformed("timeoutSeconds is %g, want more than 0 and at most %g", r.TimeoutSeconds, MaxTimeout.Seconds())
	}
	if r.MaxOutputBytes <= 0 {
		return malformed("maxOutputBytes is %d, want more than 0", r.MaxOutputBytes)
	}
	if r.More == nil {
		if r.Source == "" {
			return malformed("there is no source")
		}
		return nil
	}
	return r.More.check(r)
}

func (m *More) check(r Run) error {
	for _, text := range slices.Concat(m.Words, m.OutputPatterns, m.RequireWalls, []string{m.ID, m.Actor, m.Grant, m.Skill, m.Script, m.Module}) {
		if !utf8.ValidString(text) {
			return malformed("a text of tracon is not UTF-8")
		}
	}
	for _, f := range []struct{ name, value string }{{"id", m.ID}, {"skill", m.Skill}, {"script", m.Script}, {"mode", m.Mode}} {
		if f.value == "" || len(f.value) > MaxName {
			return malformed("tracon.%s has %d bytes, want 1 to %d", f.name, len(f.value), MaxName)
		}
	}
	if _, err := m.Digest(); err != nil {
		return err
	}
	for _, f := range []struct{ name, value string }{{"actor", m.Actor}, {"grant", m.Grant}, {"extension", m.Extension}, {"module", m.Module}} {
		if len(f.value) > MaxName {
			return malformed("tracon.%s has %d bytes, at most %d", f.name, len(f.value), MaxName)
		}
	}
	if len(m.StandardInput64) > 0 && r.StandardInput != "" {
		return malformed("standardInput stands twice, as text and as base64")
	}
	if len(m.Files) == 0 && len(m.Declaration) > 0 {
		return malformed("tracon.declaration without tracon.files")
	}
	for name, n := range map[string]int64{"maxOutputsBytes": m.MaxOutputsBytes, "maxOutputFiles": int64(m.MaxOutputFiles), "memory": m.Memory, "processes": int64(m.Processes)} {
		if n < 0 {
			return malformed("tracon.%s is %d", name, n)
		}
	}
	seen := map[string]bool{}
	for _, v := range m.Environment {
		if v.Name == "" || len(v.Name) > MaxName || seen[v.Name] {
			return malformed("a variable of tracon.environment has no name, a long one, or stands twice")
		}
		seen[v.Name] = true
	}
	return nil
}

// Digest returns the closure's.
func (m *More) Digest() (bundle.Digest, error) {
	d, err := bundle.ParseDigest(strings.ToLower(m.Bundle))
	if err != nil {
		return d, malformed("tracon.bundle: %v", err)
	}
	return d, nil
}

// Closure returns the closure that travelled within m, and false where it did not.
// Its digest is not compared.
func (m *More) Closure(limits bundle.Limits) (bundle.Bundle, bool, error) {
	if len(m.Files) == 0 {
		return bundle.Bundle{}, false, nil
	}
	b, err := bundle.New(Files(m.Files), m.Declaration, limits)
	return b, err == nil, err
}

// Files returns list as files of a bundle. They share the bytes.
func Files(list []File) []bundle.File {
	files := make([]bundle.File, len(list))
	for i, f := range list {
		files[i] = bundle.File{Path: f.Path, Data: f.Data}
	}
	return files
}

// FilesOf returns files as this wire has them. They share the bytes.
func FilesOf(files []bundle.File) []File {
	list := make([]File, len(files))
	for i, f := range files {
		list[i] = File{Path: f.Path, Data: f.Data}
	}
	return list
}

// A Closure is the body of PUT bundles/{digest}: the files of a closure, and the
// declaration that is part of its digest.
type Closure struct {
	Files       []File `json:"files"`
	Declaration []byte `json:"declaration,omitempty"`
}

// ReadClosure reads a Closure of at most max bytes; zero means [MaxClosure].
//
// # Errors
//
// One that wraps ErrTooLarge, ErrMalformed, or r's own.
func ReadClosure(r io.Reader, max int64) (Closure, error) {
	var c Closure
	err := read(r, orMost(max, MaxClosure), &c)
	if err == nil && len(c.Files) == 0 {
		err = malformed("a closure without files")
	}
	return c, err
}

// Bundle returns the closure within limits.
func (c Closure) Bundle(limits bundle.Limits) (bundle.Bundle, error) {
	return bundle.New(Files(c.Files), c.Declaration, limits)
}

// ClosureOf returns b as it is uploaded.
func ClosureOf(b bundle.Bundle) Closure {
	return Closure{FilesOf(b.Files()), b.Declaration()}
}

// Encode returns c's JSON.
func (c Closure) Encode() ([]byte, error) { return encode(c) }

// Commitment is the digest of everything that r asks for, but for its ticket, which
// is signed over it.
func (r Run) Commitment() (bundle.Digest, error) {
	if r.More != nil {
		more := *r.More
		more.Ticket = ""
		r.More = &more
	}
	b, err := r.Encode()
	if err != nil {
		return bundle.Digest{}, err
	}
	return bundle.Sum(append([]byte("tracon/run/1\n"), b...)), nil
}
