package skill

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/strictyaml"
)

const (
	// MaxMarkdown is the most bytes that SKILL.md may have.
	MaxMarkdown = 256 << 10

	maxDescription   = 1024 // characters; see the standard
	maxName          = 64
	maxMended        = 1000 // lines of a frontmatter that is mended; a real one has ten
	maxCompatibility = 500
	markdown         = "SKILL.md"
)

var known = []string{"allowed-tools", "compatibility", "description", "license", "metadata", "name"}

// A reader reads one SKILL.md.
type reader struct {
	folder string // its name; empty: not known
	diags  []Diagnostic
	root   *strictyaml.Node // the frontmatter; nil where it cannot be read
}

// readMarkdown reads SKILL.md leniently. The skill can be used when none of the
// diagnostics is an error.
func readMarkdown(data []byte, folder string) (m Meta, body string, diags []Diagnostic) {
	r := &reader{folder: folder}
	m, body = r.read(data)
	return m, body, r.diags
}

// Frontmatter returns every field of the frontmatter of a SKILL.md as one JSON object,
// those that the standard does not know too. It is nil where the frontmatter cannot be
// read, or has what JSON cannot say.
func Frontmatter(data []byte) []byte {
	r := &reader{}
	r.read(data)
	if r.root == nil || r.root.Kind != strictyaml.Map {
		return nil
	}
	b, err := r.root.JSON()
	if err != nil {
		return nil
	}
	return b
}

func (r *reader) say(s Severity, code string, line int, remedy, format string, args ...any) {
	// What a publisher wrote may stand in it: it is bounded here for whatever says it.
	r.diags = append(r.diags, Diagnostic{s, code, markdown, line, clip(fmt.Sprintf(format, args...), maxSaid), remedy})
}

// maxSaid is the most bytes that one diagnostic says.
const maxSaid = 1000

func (r *reader) read(data []byte) (m Meta, body string) {
	text := strings.TrimPrefix(string(data), "\uFEFF")
	switch {
	case len(data) > MaxMarkdown:
		r.say(Error, "markdown-large", 0, "move parts of it into files of their own", "it has %d bytes, at most %d", len(data), MaxMarkdown)
		return m, ""
	case strings.TrimSpace(text) == "":
		r.say(Error, "markdown-empty", 0, "write a frontmatter with name and description", "empty")
		return m, ""
	case !utf8.ValidString(text):
		line := 1 + strings.Count(text[:invalidAt(text)], "\n")
		r.say(Error, "markdown-encoding", line, "save it as UTF-8", "not UTF-8 (line %d)", line)
		return m, ""
	}
	lines := strings.Split(text, "\n")
	open := 0
	for open < len(lines) && blank(lines[open]) {
		open++
	}
	if !fence(lines[open]) {
		r.say(Error, "frontmatter-missing", 1, "begin it with a line --- and the fields name and description", "no frontmatter")
		return m, ""
	}
	if open > 0 {
		r.say(Note, "frontmatter-late", 1, "remove them", "blank lines before the frontmatter")
	}
	end := open + 1
	for end < len(lines) && !fence(lines[end]) {
		end++
	}
	if end == len(lines) {
		r.say(Error, "frontmatter-open", open+1, "end it with a line ---", "frontmatter is not closed")
		return m, ""
	}
	if r.root = r.parse(lines[open+1:end], open+1); r.root != nil {
		m = r.fields(r.root, open+1, end+1)
	}
	return m, strings.Join(lines[end+1:], "\n")
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }
func fence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

func invalidAt(s string) int {
	for i, r := range s {
		if _, n := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && n == 1 {
			return i
		}
	}
	return len(s)
}

// parse reads the lines of the frontmatter, which begin behind skipped others.
func (r *reader) parse(lines []string, skipped int) *strictyaml.Node {
	root, err := parseLines(lines, skipped)
	if errors.Is(err, strictyaml.ErrSyntax) {
		if mended, ok := r.mend(lines, skipped); ok {
			root, err = parseLines(mended, skipped)
		}
	}
	if e, ok := errors.AsType[*strictyaml.Error](err); ok {
		switch {
		case len(errorsOf(r.diags)) > 0: // said while mending
		case errors.Is(err, strictyaml.ErrSyntax), errors.Is(err, strictyaml.ErrTag):
			r.say(Error, "frontmatter-yaml", e.Line, "write valid YAML; put texts with special characters in quotes", "line %d: %s", e.Line, e.Text)
		default:
			r.say(Error, "frontmatter-value", e.Line, "write each value once, in place", "%s", e.Text)
		}
		return nil
	}
	if root.Kind != strictyaml.Map && root.Kind != strictyaml.Null {
		r.say(Error, "frontmatter-yaml", root.Line, "write fields such as name: x", "the frontmatter is %s, not fields", root.Kind)
		return nil
	}
	return root
}

// parseLines puts blank lines first, so that every line keeps its number.
func parseLines(lines []string, skipped int) (*strictyaml.Node, error) {
	return strictyaml.Parse([]byte(strings.Repeat("\n", skipped)+strings.Join(lines, "\n")+"\n"), 2*MaxMarkdown)
}

var fieldLine = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*):(?:[ \t]+(.*?))?[ \t\r]*$`)

// mend takes a frontmatter that is not YAML apart into its fields and mends each
// that is not YAML by itself: a text with ": " in it is put in quotes, and a
// field that is not of the standard is kept as text, for it must not break those
// that are.
func (r *reader) mend(lines []string, skipped int) ([]string, bool) {
	if len(lines) > maxMended {
		return nil, false
	}
	out := slices.Clone(lines)
	for i := 0; i < len(lines); {
		if blank(lines[i]) || strings.HasPrefix(lines[i], "#") {
			i++
			continue
		}
		m := fieldLine.FindStringSubmatch(lines[i])
		if m == nil {
			return nil, false
		}
		end := i + 1
		for end < len(lines) && (blank(lines[end]) || strings.ContainsAny(lines[end][:1], " \t#-")) {
			end++
		}
		_, err := parseLines(lines[i:end], 0)
		if e, ok := errors.AsType[*strictyaml.Error](err); ok && errors.Is(err, strictyaml.ErrSyntax) {
			quoted, why := mendField(m[1], m[2], lines[i:end])
			if why == "" {
				line := skipped + i + max(e.Line, 1)
				r.say(Error, "frontmatter-yaml", line, "write valid YAML; put texts with special characters in quotes", "line %d: %s", line, e.Text)
				return nil, false
			}
			if slices.Contains(known, m[1]) {
				r.say(Warning, "frontmatter-quotes", skipped+i+1, "put the text in quotes", "%s %s", m[1], why)
			}
			out[i] = quoted
			for j := i + 1; j < end; j++ {
				out[j] = ""
			}
		}
		i = end
	}
	return out, true
}

// mendField returns the field as one line with its text in quotes, and why that
// was needed; nothing where it cannot be told what was meant.
func mendField(key, value string, lines []string) (quoted, why string) {
	text := value
	for _, l := range lines[1:] {
		text += " " + strings.TrimSpace(l)
	}
	text = strings.TrimSpace(text)
	quoted = key + ": '" + strings.ReplaceAll(text, "'", "''") + "'"
	plain := value != "" && !strings.ContainsAny(value[:1], "\"'[]{}|>&*!#%@`,?")
	switch {
	case value != "" && strings.ContainsAny(value[:1], "@`%"), strings.HasPrefix(value, "**"):
		return quoted, "begins with a character that a text in YAML must not begin with"
	case goesOn(value):
		return quoted, "goes on behind its closing quote or bracket"
	case plain && (strings.Contains(text, ": ") || strings.Contains(text, ":\t") || strings.HasSuffix(text, ":")):
		return quoted, "has an unquoted ': '"
	case !slices.Contains(known, key):
		return quoted, "is not YAML"
	}
	return "", ""
}

// goesOn reports whether text follows what a value opens with, as in "Smart" commits or
// [Beta] charts: then the quotes or brackets belong to the text.
func goesOn(value string) bool {
	if value == "" {
		return false
	}
	end, ok := map[byte]string{'"': "\"", '\'': "'", '[': "]", '{': "}"}[value[0]]
	if !ok {
		return false
	}
	inner, rest, closed := strings.Cut(value[1:], end)
	rest = strings.TrimLeft(rest, "]}")
	// A text and nothing else: an escape, another quote or a bracket may mean more.
	return closed && !strings.ContainsAny(inner, `\"'[]{}`+"`") && strings.HasPrefix(rest, " ") &&
		!strings.HasPrefix(strings.TrimSpace(rest), "#") && !strings.ContainsAny(rest, `"'`) && strings.TrimSpace(rest) != ""
}

// fields takes the standard's fields out of the frontmatter, whose lines are
// first to last.
func (r *reader) fields(root *strictyaml.Node, first, last int) Meta {
	var m Meta
	var unknown []string
	unknownLine, nameLine := 0, first
	for _, f := range root.Members {
		switch f.Key {
		case "name":
			m.Name, nameLine = r.text(f), f.Line
		case "description":
			m.Description = r.text(f)
			r.description(m.Description, f.Line)
		case "license":
			m.License = r.text(f)
		case "compatibility":
			if m.Compatibility = r.text(f); utf8.RuneCountInString(m.Compatibility) > maxCompatibility {
				r.say(Warning, "compatibility-long", f.Line, "shorten it", "compatibility longer than %d characters", maxCompatibility)
			}
		case "allowed-tools":
			m.AllowedTools = r.tools(f)
		case "metadata":
			m.Metadata = r.metadata(f)
		default:
			unknown = append(unknown, visible(clip(f.Key, 60)))
			if unknownLine == 0 {
				unknownLine = f.Line
			}
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		names := strings.Join(unknown[:min(len(unknown), 10)], ", ")
		if len(unknown) > 10 {
			names += fmt.Sprintf(" and %d more", len(unknown)-10)
		}
		r.say(Note, "field-unknown", unknownLine, "put fields of your own under metadata", "unknown fields %s", names)
	}
	if m.Description == "" && len(errorsOf(r.diags)) == 0 {
		remedy := "say what the skill does and when to use it"
		if i := slices.IndexFunc(unknown, func(key string) bool { return strings.EqualFold(key, "description") }); i >= 0 {
			remedy = "write description in place of " + unknown[i] + ": case counts"
		}
		r.say(Error, "description-missing", first, remedy, "description is missing (line %d-%d)", first, last)
	}
	r.name(&m, nameLine)
	return m
}

// text returns a scalar as text. What was given in another form is kept as JSON.
func (r *reader) text(f strictyaml.Member) string {
	switch f.Value.Kind {
	case strictyaml.Null:
		return ""
	case strictyaml.List, strictyaml.Map:
		if f.Key == "name" || f.Key == "description" {
			r.say(Error, "field-kind", f.Line, "write a text", "%s is %s, not a text", f.Key, f.Value.Kind)
			return ""
		}
		r.say(Note, "field-kind", f.Line, "write a text", "%s is %s; the standard says a string", f.Key, f.Value.Kind)
		return asJSON(f.Value)
	}
	return strings.TrimSpace(f.Value.Text)
}

func asJSON(n *strictyaml.Node) string {
	b, err := n.JSON()
	if err != nil {
		return "" // a number that JSON cannot write; it only informs
	}
	return string(b)
}

func (r *reader) description(s string, line int) {
	if n := utf8.RuneCountInString(s); n > maxDescription {
		r.say(Warning, "description-long", line, "shorten it", "description longer than %d characters (%d)", maxDescription, n)
	}
	if strings.ContainsFunc(s, isBidi) {
		r.say(Warning, "description-hidden", line, "remove it", "direction control character in description")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		r.say(Warning, "description-hidden", line, "remove it", "control character in description")
	}
}

func isBidi(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }

var plainName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// name checks the skill's name, by which grants know it. Where there is none the
// folder's is taken.
func (r *reader) name(m *Meta, line int) {
	if m.Name == "" {
		if r.folder == "" || len(errorsOf(r.diags)) > 0 {
			r.say(Error, "name-missing", line, "write the folder's name", "name is missing")
			return
		}
		m.Name = r.folder
		r.say(Warning, "name-missing", line, "write the folder's name", "name is missing; the folder's is taken")
	}
	if err := grant.CheckName("skill", m.Name); err != nil {
		r.say(Error, "name-unusable", line, "use lower case letters, digits and single hyphens", "name cannot be used: %v", err)
		return
	}
	if utf8.RuneCountInString(m.Name) > maxName {
		r.say(Warning, "name-long", line, "shorten it", "name longer than %d characters", maxName)
	}
	if !plainName.MatchString(m.Name) {
		r.say(Warning, "name-form", line, "rename the skill", "name is not lower case letters, digits and single hyphens")
	}
	if s := scriptsOf(m.Name); len(s) > 1 {
		slices.Sort(s)
		r.say(Warning, "name-scripts", line, "make sure that it is the name you mean", "mixed scripts in the name (%s)", strings.Join(s, ", "))
	}
	if r.folder != "" && r.folder != m.Name {
		r.say(Warning, "name-folder", line, "give both the same name", "name differs from the folder (%s)", short(r.folder))
	}
}

// tools reads the tools that a skill says it uses. A blank inside brackets, as in
// Bash(git add:*), parts nothing.
func (r *reader) tools(f strictyaml.Member) []string {
	switch f.Value.Kind {
	case strictyaml.Null:
		return nil
	case strictyaml.List:
		r.say(Note, "field-kind", f.Line, "write them in one text, with blanks between", "allowed-tools is a list; the standard says a string")
		var all []string
		for _, item := range f.Value.Items {
			if item.Kind == strictyaml.List || item.Kind == strictyaml.Map {
				all = append(all, asJSON(item))
			} else {
				all = append(all, strings.TrimSpace(item.Text))
			}
		}
		return all
	case strictyaml.Map:
		r.say(Note, "field-kind", f.Line, "write them in one text, with blanks between", "allowed-tools is a map; the standard says a string")
		return nil
	}
	return splitTools(f.Value.Text)
}

func splitTools(s string) []string {
	var all []string
	depth, start := 0, -1
	for i, c := range s + " " {
		switch {
		case depth == 0 && (unicode.IsSpace(c) || c == ',') || i == len(s):
			if start >= 0 {
				all = append(all, s[start:i])
			}
			start = -1
			continue
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		}
		if start < 0 {
			start = i
		}
	}
	return all
}

func (r *reader) metadata(f strictyaml.Member) map[string]string {
	if f.Value.Kind == strictyaml.Null {
		return nil
	}
	if f.Value.Kind != strictyaml.Map {
		r.say(Note, "field-kind", f.Line, "write keys with texts", "metadata is %s; the standard says a map", f.Value.Kind)
		return nil
	}
	m := make(map[string]string, len(f.Value.Members))
	told := false
	for _, e := range f.Value.Members {
		if e.Value.Kind != strictyaml.String && !told {
			told = true
			r.say(Note, "metadata-kind", e.Line, "put them in quotes", "metadata values should be strings")
		}
		if e.Value.Kind == strictyaml.List || e.Value.Kind == strictyaml.Map {
			m[e.Key] = asJSON(e.Value)
		} else {
			m[e.Key] = e.Value.Text
		}
	}
	return m
}
