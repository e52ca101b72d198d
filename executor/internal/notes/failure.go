package notes

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// A Failure is a script that ended with an exit code other than 0.
type Failure struct {
	Bundle    bundle.Bundle
	Script    string // its path in the bundle
	Module    string // what it was started as; empty: by its path
	Extension string // of the allow-list, such as "py"
	Runtime   string // what ran it, such as "this host's py"
	Stderr    []byte // to its end

	// Elsewhere returns the names of the runtimes that have a package. It is called
	// for a package that is missing, with its name: letters, digits and "_", "-", ".",
	// "~", in Node "@scope/" before them. Nil: nobody knows.
	Elsewhere func(name string) []string
}

// FailureOf returns the failure of a request's script, with what there is of its standard
// error.
func FailureOf(req gate.Request, stderr []byte) Failure {
	f := Failure{
		Bundle: req.Bundle(), Script: req.Script(), Module: req.Module(), Extension: req.Extension(),
		Runtime: "this host's " + req.Extension(),
	}
	if in := req.Interpreter(); !in.Image.IsZero() {
		f.Runtime = "the runtime " + in.Name
	}
	if len(stderr) < req.MaxOutputBytes() { // otherwise its end was cut
		f.Stderr = stderr
	}
	return f
}

// maxStderr is how much of the end of standard error is looked at. A traceback
// of Python at its limit of 1,000 frames is cut by Python itself to far less.
const maxStderr = 16 << 10

// Explain returns notes on a failure whose reason people meet often, and none
// for any other. What a script writes is its own, so a note claims no more than
// that the script said so and that the bundle bears it out.
func Explain(f Failure) []string {
	if len(f.Stderr) > maxStderr {
		f.Stderr = f.Stderr[len(f.Stderr)-maxStderr:]
	}
	note := ""
	switch f.Extension {
	case "py":
		note = f.python()
	case "js", "mjs", "cjs", "ts":
		note = f.node()
	case "pl":
		note = f.perl()
	case "sh", "bash":
		note = f.shell()
	}
	if note == "" {
		return nil
	}
	return []string{note}
}

// mostNamed is how many runtimes a note names.
const mostNamed = 5

func (f Failure) lacks(name string) string {
	note := fmt.Sprintf("%s has no package %q; the script needs it", f.Runtime, name)
	if f.Elsewhere == nil {
		return note
	}
	switch list := f.Elsewhere(name); {
	case len(list) == 1:
		note += "; the runtime " + list[0] + " has it"
	case len(list) > mostNamed:
		note += fmt.Sprintf("; the runtimes %s and %d more have it", strings.Join(list[:mostNamed], ", "), len(list)-mostNamed)
	case len(list) > 1:
		note += "; the runtimes " + strings.Join(list, ", ") + " have it"
	}
	return note
}

// maxName is the longest name of a package that is told. Longer ones are none.
const maxName = 100

var (
	traceback = []byte("Traceback (most recent call last):")
	// The second form is that of python -m, where the package of the module fails.
	pyMissing  = regexp.MustCompile(`(?:^|\()ModuleNotFoundError: No module named '([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)'`)
	pyRelative = "ImportError: attempted relative import with no known parent package"
)

func (f Failure) python() string {
	text := f.Stderr
	if i := bytes.LastIndex(text, traceback); i >= 0 {
		text = text[i:]
	}
	line := lastLine(text)
	if line == pyRelative {
		return f.wantsModule()
	}
	m := pyMissing.FindStringSubmatch(line)
	if m == nil || len(m[1]) > maxName {
		return ""
	}
	name := m[1]
	switch {
	case f.holdsModule(strings.ReplaceAll(name, ".", "/")):
		return f.wantsModule()
	case f.mentionsModule(name):
		return ""
	}
	return f.lacks(name)
}

// wantsModule says how the script finds modules from the skill's root. A script
// that lies there, or was started so, is helped by nothing that we know.
func (f Failure) wantsModule() string {
	module := gate.ModuleOf(f.Script)
	if f.Module != "" || module == "" || !strings.Contains(f.Script, "/") {
		return ""
	}
	return fmt.Sprintf("the script imports modules of the skill as one that is started by python -m; declare \"module: %s\" for it in tracon.yaml", module)
}

// holdsModule reports whether Python finds the module from the skill's root.
func (f Failure) holdsModule(at string) bool {
	for _, p := range f.Bundle.Paths() {
		if rest, ok := strings.CutPrefix(p, at); ok && (rest == ".py" || strings.HasPrefix(rest, "/") && path.Ext(rest) == ".py") {
			return true
		}
	}
	return false
}

// mentionsModule reports whether anything in the bundle could be meant by the
// first element of the name: then the skill's own layout is at fault.
func (f Failure) mentionsModule(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	for _, p := range f.Bundle.Paths() {
		if path.Ext(p) == ".py" && strings.Contains("/"+strings.TrimSuffix(p, ".py")+"/", "/"+first+"/") {
			return true
		}
	}
	return false
}

var (
	nodeMissing = regexp.MustCompile(`(?m)^Error(?: \[ERR_MODULE_NOT_FOUND\])?: Cannot find (?:module|package) '((?:@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9~][A-Za-z0-9._~-]*)(?:/[^'\n]*)?'`)
	nodeCode    = regexp.MustCompile(`(?m)^  code: '(?:ERR_)?MODULE_NOT_FOUND'`)
)

func (f Failure) node() string {
	m := nodeMissing.FindAllSubmatchIndex(f.Stderr, -1)
	if m == nil {
		return ""
	}
	last := m[len(m)-1]
	name := string(f.Stderr[last[2]:last[3]])
	// Node writes the code behind an error that nobody caught.
	if len(name) > maxName || !nodeCode.Match(f.Stderr[last[1]:]) {
		return ""
	}
	for _, p := range f.Bundle.Paths() {
		if strings.Contains("/"+p, "/node_modules/"+name+"/") {
			return ""
		}
	}
	return f.lacks(name)
}

var perlMissing = regexp.MustCompile(`(?m)^Can't locate ([A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*)\.pm in @INC`)

func (f Failure) perl() string {
	m := perlMissing.FindSubmatch(f.Stderr)
	if m == nil || len(m[1]) > maxName {
		return ""
	}
	for _, p := range f.Bundle.Paths() {
		if strings.HasSuffix("/"+p, "/"+string(m[1])+".pm") {
			return ""
		}
	}
	return f.lacks(strings.ReplaceAll(string(m[1]), "/", "::"))
}

// maxHead is how much of a script is searched for CR LF.
const maxHead = 4 << 10

func (f Failure) shell() string {
	text, _, _ := f.Bundle.Text(f.Script)
	if !strings.Contains(text[:min(len(text), maxHead)], "\r\n") {
		return ""
	}
	return "the script's lines end in CR LF, and a shell takes the CR for a part of each line; save it with LF alone"
}

// lastLine returns the last line that is not blank.
func lastLine(text []byte) string {
	text = bytes.TrimRight(text, " \t\r\n")
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
