package config

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/tracon-go/tracon/gate"
)

// runtimePrefix begins an interpreter that lies in a runtime.
const runtimePrefix = "runtime:"

// InRuntime reads an interpreter that lies in a runtime:
// "runtime:NAME" or "runtime:NAME:/path/in/it". The path is empty where none is
// given: it is looked for. Ok is false for what is no such text.
func InRuntime(text string) (name, in string, ok bool) {
	text, ok = strings.CutPrefix(text, runtimePrefix)
	name, in, _ = strings.Cut(text, ":")
	return name, in, ok
}

// FormatInterpreter writes an entry of the allow-list as it is given.
func FormatInterpreter(in gate.Interpreter) string {
	if in.Name != "" && in.Path != "" {
		return runtimePrefix + in.Name + ":" + in.Path
	}
	return in.Path + in.Name
}

// checkInterpreter says why text cannot be what runs the scripts of ext, and
// returns it in its shortest form.
func checkInterpreter(ext, text string) (string, error) {
	if err := gate.CheckExtension(ext); err != nil {
		return "", err
	}
	if name, in, ok := InRuntime(text); ok {
		if err := gate.CheckRuntime(name); err != nil {
			return "", err
		}
		if in != "" && (!path.IsAbs(in) || path.Clean(in) != in) {
			return "", fmt.Errorf("the interpreter for %s is %q in the runtime %s; write an absolute path, such as runtime:%s:/usr/bin/python3", ext, in, name, name)
		}
		return text, nil
	}
	if !filepath.IsAbs(text) {
		return "", fmt.Errorf("the interpreter for %s is %q; write an absolute path, such as /usr/bin/python3, or runtime:NAME for one in a runtime", ext, text)
	}
	return filepath.Clean(text), nil
}

func setInterpreters(c *Config, s string, _ folder) error {
	c.Interpreters = map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		if pair == "" {
			continue
		}
		ext, text, _ := strings.Cut(pair, "=")
		text, err := checkInterpreter(ext, text)
		if err != nil {
			return err
		}
		c.Interpreters[ext] = text
	}
	return nil
}
