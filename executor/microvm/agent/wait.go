//go:build linux

package main

import (
	_ "embed"

	"github.com/tracon-go/tracon/executor/microvm/internal/frame"
)

// Where what waits for a script lies, below the script's /etc. It stays there: Node.js has
// each worker of a script load it.
const (
	waitPy = "tracon/wait.py"
	waitJS = "tracon/wait.js"
)

//go:embed wait.py
var waitPyText string

//go:embed wait.js
var waitJSText string

// kinds says how an interpreter is started that has no script yet: where it does not wait
// for one it does nothing, and what it needs is in memory then.
var kinds = map[string]struct {
	waits bool
	more  []string
}{
	frame.Python: {true, []string{"/etc/" + waitPy}},
	frame.Node:   {true, []string{"--require", "/etc/" + waitJS, "/etc/" + waitJS}},
	frame.Bash:   {false, []string{"-c", ":"}},
	frame.Sh:     {false, []string{"-c", ":"}},
	frame.Perl:   {false, []string{"-e", "1"}},
	frame.Ruby:   {false, []string{"-e", "1"}},
}
