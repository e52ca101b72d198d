package skill

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/strictyaml"
	"github.com/tracon-go/tracon/schema"
)

const (
	// DeclarationName is the file beside SKILL.md that says how scripts take their arguments.
	DeclarationName = "tracon.yaml"

	// MaxDeclaration is the most bytes that it may have.
	MaxDeclaration = 256 << 10
)

//go:embed declaration.schema.json
var declarationSchema []byte

// DeclarationSchema returns the JSON Schema (2020-12) of tracon.yaml, for editors
// and for people. What it refuses, reading refuses too; reading also sees what no
// schema can say: that the paths are those of files, that a module is the script's,
// that an argument schema is one.
func DeclarationSchema() []byte { return bytes.Clone(declarationSchema) }

// checker tells what is wrong with a schema; it keeps what it has compiled.
var checker = schema.New(schema.Options{})

// A declaration is what tracon.yaml says.
type declaration struct {
	scripts map[string]gate.Declaration
	lines   map[string]int // of each script's entry
}

// undeclared is how a file script takes its arguments that tracon.yaml does not name.
func undeclared() gate.Declaration { return gate.Declaration{Mode: gate.Argv} }

// readDeclaration reads tracon.yaml strictly and says all that is wrong with it.
func readDeclaration(data []byte) (declaration, []Diagnostic) {
	r := &declReader{out: declaration{scripts: map[string]gate.Declaration{}, lines: map[string]int{}}}
	if len(data) == 0 {
		return r.out, nil
	}
	root, err := strictyaml.Parse(data, MaxDeclaration)
	if e, ok := errors.AsType[*strictyaml.Error](err); ok {
		r.bad("declaration-yaml", e.Line, "write plain YAML, each key once", "%s", e.Text)
		return r.out, r.diags
	}
	r.document(root)
	return r.out, r.diags
}

type declReader struct {
	out   declaration
	diags []Diagnostic
}

func (r *declReader) bad(code string, line int, remedy, format string, args ...any) {
	r.diags = append(r.diags, Diagnostic{Error, code, DeclarationName, line, clip(fmt.Sprintf(format, args...), maxSaid), remedy})
}

// is reports whether n is of the kind, and says so where it is not.
func (r *declReader) is(n *strictyaml.Node, kind strictyaml.Kind, what string) bool {
	if n.Kind != kind {
		r.bad("declaration-kind", n.Line, "write "+kind.String(), "%s is %s", what, n.Kind)
	}
	return n.Kind == kind
}

func (r *declReader) unknown(m strictyaml.Member, where string, keys ...string) {
	r.bad("declaration-key", m.Line, "the keys are "+strings.Join(keys, ", "), "unknown key %s in %s", short(m.Key), where)
}

func (r *declReader) document(root *strictyaml.Node) {
	if root.Kind == strictyaml.Null || !r.is(root, strictyaml.Map, "the file") {
		return
	}
	for _, m := range root.Members {
		switch {
		case m.Key != "scripts":
			r.unknown(m, "the file", "scripts")
		case r.is(m.Value, strictyaml.Map, "scripts"):
			for _, s := range m.Value.Members {
				r.script(s)
			}
		}
	}
}

func (r *declReader) script(m strictyaml.Member) {
	if err := bundle.CheckPath(m.Key); err != nil {
		r.bad("declaration-path", m.Line, "write the script's path from the skill's folder, such as scripts/run.py", "%v", err)
		return
	}
	r.out.lines[m.Key] = m.Line
	if !r.is(m.Value, strictyaml.Map, "the entry of "+short(m.Key)) {
		return
	}
	d := gate.Declaration{}
	var flags *strictyaml.Node
	for _, f := range m.Value.Members {
		switch f.Key {
		case "description":
			d.Description = r.description(f.Value)
		case "arguments":
			d.Mode = r.mode(f.Value)
		case "schema":
			d.Schema = r.schema(f.Value)
		case "flags":
			if flags = f.Value; r.is(flags, strictyaml.Map, "flags") {
				d.Flags = r.flags(flags)
			}
		case "timeout":
			d.Timeout = r.timeout(f.Value)
		case "module":
			d.Module = r.module(f.Value, m.Key)
		case "outputs":
			d.Outputs = r.outputs(f.Value)
		default:
			r.unknown(f, short(m.Key), scriptKeys...)
		}
	}
	if flags != nil && d.Mode != gate.Flags {
		r.bad("declaration-flags", flags.Line, "write arguments: flags, or leave flags out", "flags go with arguments: flags alone")
	}
	if d.Mode == "" {
		d.Mode = gate.Argv
	}
	if d.Mode == gate.Flags {
		r.close(&d, m.Value)
	}
	r.out.scripts[m.Key] = d
}

// scriptKeys are what an entry may hold, in the order in which it is written.
var scriptKeys = []string{"description", "arguments", "schema", "flags", "timeout", "module", "outputs"}

func (r *declReader) description(n *strictyaml.Node) string {
	if !r.is(n, strictyaml.String, "description") {
		return ""
	}
	text := strings.TrimSpace(n.Text)
	if count := utf8.RuneCountInString(n.Text); count > maxDescription {
		r.bad("declaration-description", n.Line, "shorten it", "description longer than %d characters (%d)", maxDescription, count)
	}
	return text
}

func (r *declReader) mode(n *strictyaml.Node) gate.Mode {
	mode := gate.Mode(n.Text)
	if n.Kind != strictyaml.String || !slices.Contains(gate.Modes(), mode) {
		r.bad("declaration-arguments", n.Line, "write stdin, argv, flags or none", "arguments is %s, which is no way to take them", short(n.Text))
		return gate.None
	}
	return mode
}

// module takes the one value that means the script itself: another would run what
// the grant does not name.
func (r *declReader) module(n *strictyaml.Node, script string) string {
	right := gate.ModuleOf(script)
	switch {
	case n.Kind == strictyaml.String && n.Text == right && right != "":
		return right
	case right == "":
		r.bad("declaration-module", n.Line, "leave module out, or rename the script: letters, digits and _, ending in .py", "%s is no module that Python can name", short(script))
	default:
		r.bad("declaration-module", n.Line, "write module: "+right, "module is %s, which is not %s", short(n.Text), short(script))
	}
	return ""
}

// outputs reads the patterns of what comes back. They count from outputs/; one
// that begins with it, as the script's own path would, means the same.
func (r *declReader) outputs(n *strictyaml.Node) []string {
	if !r.is(n, strictyaml.List, "outputs") {
		return nil
	}
	if len(n.Items) > gate.MaxOutputPatterns {
		r.bad("declaration-outputs", n.Line, "join some of them with *", "outputs has %d patterns, at most %d", len(n.Items), gate.MaxOutputPatterns)
		return nil
	}
	if len(n.Items) == 0 {
		r.bad("declaration-outputs", n.Line, "leave outputs out to get all files, or write a pattern", "outputs is an empty list")
	}
	var all []string
	for _, item := range n.Items {
		pattern := strings.TrimPrefix(item.Text, outputsFolder)
		switch {
		case item.Kind != strictyaml.String || !gate.ValidPattern(pattern):
			r.bad("declaration-outputs", item.Line, `write a pattern below outputs/, such as "*.csv" or "**/*.png"`, "%s is no pattern of files below outputs/", short(item.Text))
		case slices.Contains(all, pattern):
			r.bad("declaration-outputs", item.Line, "write it once", "%s stands twice", short(item.Text))
		default:
			all = append(all, pattern)
		}
	}
	return all
}

const outputsFolder = "outputs/"

// schema turns the schema into JSON, with every number as it was written, and
// compiles it to see that it is one.
func (r *declReader) schema(n *strictyaml.Node) []byte {
	if n.Kind != strictyaml.Map && n.Kind != strictyaml.Bool {
		r.bad("declaration-schema", n.Line, "write a JSON Schema as a map", "schema is %s", n.Kind)
		return nil
	}
	b, err := n.JSON()
	if e, ok := errors.AsType[*strictyaml.Error](err); ok {
		r.bad("declaration-schema", e.Line, "write it as JSON has it", "%s", e.Text)
		return nil
	}
	if err := checker.Compile(b); err != nil {
		line, remedy := n.Line, "mend the schema"
		if e, ok := errors.AsType[*schema.SchemaError](err); ok {
			line, remedy = lineOf(n, e.Pointer), cmp.Or(e.Remedy, remedy)
			err = &schema.SchemaError{Pointer: e.Pointer, Text: e.Text}
		}
		r.bad("declaration-schema", line, remedy, "%v", err)
		return nil
	}
	return b
}

// close makes sure that a model cannot set a flag that nobody declared: with
// flags, a name that the schema lets through becomes a word of the command line.
// Without a schema the flags that are named are all that there is.
func (r *declReader) close(d *gate.Declaration, script *strictyaml.Node) {
	if n := script.Member("schema"); n != nil {
		for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
			if v := n.Member(key); v != nil && v.Kind == strictyaml.Bool && v.Text == "false" {
				return
			}
		}
		r.bad("declaration-open", n.Line, "write additionalProperties: false, and name every property below properties",
			"the schema of a script that takes flags lets undeclared ones through")
		return
	}
	d.Schema = closedSchema(d.Flags)
}

// closedSchema takes an object with the named properties, whatever they hold, and
// no others.
func closedSchema(flags map[string]gate.Flag) []byte {
	properties := map[string]struct{}{}
	for name := range flags {
		properties[name] = struct{}{}
	}
	b, _ := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "properties": properties}) // never fails
	return b
}

// lineOf returns the line of the value at a JSON Pointer below n, or of the last
// one on the way that is there.
func lineOf(n *strictyaml.Node, pointer string) int {
	line := n.Line
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next := (*strictyaml.Node)(nil)
		switch n.Kind {
		case strictyaml.Map:
			for _, m := range n.Members {
				if m.Key == token {
					next, line = m.Value, m.Line
				}
			}
		case strictyaml.List:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Items) {
				next, line = n.Items[i], n.Items[i].Line
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return line
}

var flagWord = regexp.MustCompile(`^--?[A-Za-z0-9][A-Za-z0-9_.-]*$`)

const maxPosition = 100

func (r *declReader) flags(n *strictyaml.Node) map[string]gate.Flag {
	flags := make(map[string]gate.Flag, len(n.Members))
	places := map[int]string{}
	for _, m := range n.Members {
		var f gate.Flag
		if !r.is(m.Value, strictyaml.Map, "the flag of "+short(m.Key)) {
			continue
		}
		for _, e := range m.Value.Members {
			switch e.Key {
			case "flag":
				if f.Flag = e.Value.Text; e.Value.Kind != strictyaml.String || !flagWord.MatchString(f.Flag) {
					r.bad("declaration-flags", e.Value.Line, "write a flag such as --value or -v, in quotes", "%s is no flag", short(e.Value.Text))
				}
			case "position":
				var err error
				if f.Position, err = strconv.Atoi(e.Value.Text); err != nil || e.Value.Kind != strictyaml.Number || strconv.Itoa(f.Position) != e.Value.Text || f.Position < 1 || f.Position > maxPosition {
					r.bad("declaration-flags", e.Value.Line, "count from 1", "%s is no position", short(e.Value.Text))
				}
			default:
				r.unknown(e, "the flag of "+short(m.Key), "flag", "position")
			}
		}
		if f.Flag != "" && f.Position != 0 {
			r.bad("declaration-flags", m.Line, "write one of the two", "%s has a flag and a position", short(m.Key))
		}
		if was, ok := places[f.Position]; ok && f.Position != 0 {
			r.bad("declaration-flags", m.Line, "give each its own", "%s and %s have the same position", short(was), short(m.Key))
		}
		places[f.Position] = m.Key
		flags[m.Key] = f
	}
	return flags
}

func (r *declReader) timeout(n *strictyaml.Node) time.Duration {
	d, err := time.ParseDuration(n.Text)
	if err != nil || n.Kind != strictyaml.String || d <= 0 || d > gate.CeilingTimeout {
		r.bad("declaration-timeout", n.Line, "write a time with its unit, such as 10s, of at most 24h", "%s is no timeout", short(n.Text))
		return 0
	}
	return d
}
