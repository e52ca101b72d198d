package interpreter

import (
	"path/filepath"
	"strings"

	"github.com/tracon-go/tracon/gate"
)

// A Kind is a family of interpreters that take the same options.
type Kind string

// The kinds. Unknown is that of an interpreter that only the operator knows: it
// is started with the script and no options.
const (
	Python  Kind = "python"
	Node    Kind = "node"
	Bash    Kind = "bash"
	Sh      Kind = "sh" // dash, ash and whatever else the host calls sh
	Perl    Kind = "perl"
	Ruby    Kind = "ruby"
	Unknown Kind = ""
)

// An extensionRule says what runs an extension.
type extensionRule struct {
	kind    Kind
	names   []string // to search for, the best first
	install string   // what to tell who has none
}

var node = extensionRule{Node, []string{"node", "nodejs"}, "Node.js (on Debian: apt-get install nodejs)"}

var extensions = map[string]extensionRule{
	"py":   {Python, []string{"python3", "python"}, "Python 3 (on Debian: apt-get install python3)"},
	"js":   node,
	"mjs":  node, // node takes the extension for the kind of module
	"cjs":  node,
	"sh":   {Sh, []string{"bash", "sh", "dash"}, "bash (on Debian: apt-get install bash)"},
	"bash": {Bash, []string{"bash"}, "bash (on Debian: apt-get install bash)"},
	"pl":   {Perl, []string{"perl"}, "Perl (on Debian: apt-get install perl)"},
	"rb":   {Ruby, []string{"ruby"}, "Ruby (on Debian: apt-get install ruby)"},
}

// options stand between the interpreter and the script. They keep it from
// reading what no bundle holds: start-up files, variables, a user's own modules.
//
//   - python: -E and -s leave PYTHON* and the user's site out; -B leaves no
//     __pycache__; without -u, output is lost when the script is killed. Not -I:
//     it forbids the import of siblings, which most real scripts need, and every
//     sibling is pinned.
//   - node: native add-ons are no files that a reviewer reads.
//   - bash: -p ignores BASH_ENV and functions from the environment. Long options
//     must come first.
//   - ruby: RUBYOPT is ignored. Gems stay, as the site packages of Python do:
//     they are the operator's, and many scripts need one.
var options = map[Kind][]string{
	Python: {"-E", "-s", "-B", "-u"},
	Node:   {"--no-addons", "--disable-proto=throw"},
	Bash:   {"--noprofile", "--norc", "-p"},
	Ruby:   {"--disable=rubyopt"},
}

// KindOf returns the kind of the interpreter at path: what its name says
// ("python3.12" is Python), and where the name says nothing, what usually runs
// the extension.
func KindOf(extension, path string) Kind {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".exe")
	switch strings.TrimRight(name, "0123456789.-") {
	case "python", "pypy":
		return Python
	case "node", "nodejs":
		return Node
	case "bash":
		return Bash
	case "sh", "dash", "ash":
		return Sh
	case "perl":
		return Perl
	case "ruby":
		return Ruby
	}
	return extensions[extension].kind
}

// Command returns how the interpreter at path is started for a script of the
// extension: the path and the fixed options of its kind. What follows is the
// script's path and then its arguments, so that no argument can be an option of
// the interpreter.
func Command(extension, path string) []string {
	return append([]string{path}, options[KindOf(extension, path)]...)
}

// CommandOf returns how the script of a request is started that lies at the path, which
// is absolute, so that it cannot be taken for an option: the interpreter with its options,
// the script or, where it is started as one, its module, and its words.
func CommandOf(req gate.Request, script string) []string {
	argv := Command(req.Extension(), req.Interpreter().Path)
	if m := req.Module(); m != "" {
		argv = append(argv, "-m", m)
	} else {
		argv = append(argv, script)
	}
	return append(argv, req.Words()...)
}
