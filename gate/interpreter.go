package gate

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// interpreter proves that the allow-list has what runs the script.
type interpreter struct {
	extension string // the entry of the allow-list
	Interpreter
}

// interpreter is the gate "interpreter" (R11). The host lists; the tenant narrows.
func (o open) interpreter(p pinned) (interpreter, error) {
	script, _, _ := p.bundle.Text(p.script)
	ext, in, err := allowed(o.host, o.policy, p.script, script)
	if err != nil {
		return interpreter{}, err
	}
	return interpreter{ext, in}, nil
}

func allowed(host Host, policy Policy, script, text string) (string, Interpreter, error) {
	deny := func(remedy string, err error) (string, Interpreter, error) {
		return "", Interpreter{}, &Denial{Gate: InterpreterGate, Err: err, Remedy: remedy}
	}
	ext := Extension(script, text)
	if ext == "" {
		return deny("give the script an extension such as .py or .sh, or a first line such as `#!/usr/bin/env python3`",
			fmt.Errorf("script %q has no extension, and its first line names no interpreter that is known", script))
	}
	in, ok := host.Interpreters[ext]
	if !ok {
		return deny("add "+ext+" to the host's allow-list", fmt.Errorf("the host's allow-list has no interpreter for %q", ext))
	}
	if err := in.check(); err != nil {
		return deny("set "+ext+" in the host's allow-list again", fmt.Errorf("the host's allow-list, %q: %w", ext, err))
	}
	if !slices.Contains(policy.Interpreters, ext) {
		return deny("add "+ext+" to the tenant's policy", fmt.Errorf("the tenant's policy does not allow %q", ext))
	}
	return ext, in, nil
}

// check says why nothing can be run with in, or nil. A path that is not absolute
// would be looked up, and who steers the look-up would choose what runs.
func (in Interpreter) check() error {
	switch {
	case in.Path == "" && in.Name == "":
		return errors.New("an interpreter has a path or a runtime's name, or both")
	case strings.ContainsAny(in.Name, `/\`) || strings.TrimSpace(in.Name) != in.Name:
		return fmt.Errorf("the name %q is not that of a runtime", in.Name)
	case in.Name == "" && !filepath.IsAbs(in.Path):
		return fmt.Errorf("the path %q is not absolute", in.Path)
	case in.Name == "" && !in.Image.IsZero():
		return errors.New("an interpreter in a runtime has the runtime's name")
	case in.Name != "" && in.Path == "" && !(in.Digest.IsZero() && in.Image.IsZero()):
		return errors.New("an interpreter in a runtime has a path in it")
	case in.Name != "" && in.Path != "" && in.Image.IsZero():
		return fmt.Errorf("the runtime %q is not kept here, or has no such interpreter: %s", in.Name, in.Path)
	case in.Name != "" && in.Path != "" && !path.IsAbs(in.Path):
		return fmt.Errorf("the path %q in the runtime %q is not absolute", in.Path, in.Name)
	}
	return nil
}

// Extension returns the entry of an allow-list that runs the script: its
// extension without the dot, or, for a script without one, what its first line
// names: "py", "sh" or "js". It returns "" where neither says. The first line
// is data and nothing more: what it names is not run.
func Extension(script, text string) string {
	if ext := path.Ext(script); ext != "" && ext != "." {
		return ext[1:]
	}
	line, ok := strings.CutPrefix(text, "#!")
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line[:min(len(line), 256)], "\n")
	words := strings.Fields(line)
	if len(words) > 0 && path.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
	}
	if len(words) == 0 {
		return ""
	}
	switch name := path.Base(words[0]); {
	case name == "node" || name == "nodejs":
		return "js"
	case name == "sh" || name == "bash" || name == "dash":
		return "sh"
	case strings.TrimRight(name, "0123456789.") == "python":
		return "py"
	case name == "uv" && len(words) > 1 && words[1] == "run": // a Python script that names its packages
		return "py"
	}
	return ""
}
