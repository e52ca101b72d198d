package gate_test

import (
	"strings"
	"testing"

	"github.com/tracon-go/tracon/gate"
)

// R11, cases 32 and 39b: the extension chooses; where there is none, the first
// line is read as data, and never run.
func TestExtension(t *testing.T) {
	for _, tt := range []struct{ name, script, text, want string }{
		{"by extension", "scripts/run.py", "", "py"},
		{"the last extension", "a.tar.gz", "", "gz"},
		{"the extension before the first line", "run.sh", "#!/usr/bin/env python3\n", "sh"},
		{"exact case", "RUN.PY", "", "PY"},
		{"a dot in a folder", "scripts.d/run", "", ""},
		{"a hidden file", ".profile", "", "profile"},
		{"neither", "run", "print(1)\n", ""},
		{"nothing in it", "run", "", ""},

		{"python3", "run", "#!/usr/bin/python3\nprint(1)\n", "py"},
		{"python", "run", "#!/usr/bin/python\n", "py"},
		{"python with a version", "run", "#!/opt/bin/python3.12\n", "py"},
		{"env", "run", "#!/usr/bin/env python3\n", "py"},
		{"env -S", "run", "#!/usr/bin/env -S python3 -u\n", "py"},
		{"env with a variable", "run", "#!/usr/bin/env -S A=1 B=2 python3\n", "py"},
		{"env alone", "run", "#!/usr/bin/env\n", ""},
		{"env with options alone", "run", "#!/usr/bin/env -S\n", ""},
		{"options of the interpreter", "run", "#!/usr/bin/python3 -I -u\n", "py"},
		{"blanks", "run", "#!  /usr/bin/python3\t-u \n", "py"},
		{"case 32: CR LF", "run", "#!/usr/bin/env python3\r\nprint(1)\r\n", "py"},
		{"no line feed", "run", "#!/bin/sh", "sh"},
		{"bash", "run", "#!/bin/bash -e\n", "sh"},
		{"dash", "run", "#!/bin/dash\n", "sh"},
		{"node", "run", "#!/usr/bin/env node\n", "js"},
		{"nodejs", "run", "#!/usr/bin/nodejs\n", "js"},
		{"bare", "run", "#!python3\n", "py"},
		{"uv run", "run", "#!/usr/bin/env -S uv run --script\n# /// script\n", "py"},
		{"uv run, quietly", "run", "#!/usr/bin/env -S uv --quiet run --script\n", "py"},
		{"uv by its path", "run", "#!/usr/local/bin/uv run\n", "py"},
		{"uv that installs", "run", "#!/usr/bin/env -S uv tool install x\n", ""},
		{"uv alone", "run", "#!/usr/bin/env uv\n", ""},

		{"a byte order mark", "run", "\ufeff#!/bin/sh\n", ""},
		{"a blank before", "run", " #!/bin/sh\n", ""},
		{"on the second line", "run", "\n#!/bin/sh\n", ""},
		{"an empty first line", "run", "#!\n/bin/sh\n", ""},
		{"another shell", "run", "#!/bin/zsh\n", ""},
		{"perl", "run", "#!/usr/bin/perl\n", ""},
		{"a name that begins alike", "run", "#!/usr/bin/python3-evil\n", ""},
		{"a name that begins alike, without a dash", "run", "#!/usr/bin/pythonx\n", ""},
		{"another case", "run", "#!/usr/bin/PYTHON3\n", ""},
		{"a first line that does not end", "run", "#!" + strings.Repeat(" ", 300) + "/bin/sh\n", ""},
		{"NUL", "run", "#!/bin/sh\x00\n", ""},
		{"binary", "run", "\x7fELF\x02", ""},
	} {
		if got := gate.Extension(tt.script, tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzExtension(f *testing.F) {
	f.Add("run", "#!/usr/bin/env -S A=1 python3")
	f.Add("run.py", "")
	f.Add(".", "#!")
	f.Fuzz(func(t *testing.T, script, text string) {
		ext := gate.Extension(script, text)
		if strings.ContainsAny(ext, "./") {
			t.Errorf("Extension(%q, %q) is %q", script, text, ext)
		}
		if !strings.Contains(script, ".") && ext != "" && ext != "py" && ext != "sh" && ext != "js" {
			t.Errorf("the first line %q chooses %q", text, ext)
		}
	})
}
