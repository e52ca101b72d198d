//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/sandbox"
	"github.com/tracon-go/tracon/internal/hostcase"
)

// P10: a module of the standard library's name is taken from the pinned skill,
// where it has one, and from nowhere that a caller or a script can write to. The
// controls show that each of those folders has a module that could be taken.
func TestPlantedModules(t *testing.T) {
	e, _ := open(t, sandbox.Config{})
	w := executortest.NewWorld(hostcase.Interpreters(t))
	const plant = "import os, sys\nfolders = ['outputs', os.environ['TMPDIR'], os.path.expanduser('~')]\nfor d in folders:\n  os.makedirs(d, exist_ok=True)\n  with open(d + '/colorsys.py', 'w') as f: f.write('WHO = \"planted\"\\n')\n"
	const ask = "import colorsys\nprint(getattr(colorsys, 'WHO', 'library'))\n"
	const point = "for d in folders + ['inputs']:\n  sys.path.insert(0, d); sys.modules.pop('colorsys', None)\n  import colorsys; print(colorsys.WHO); sys.path.pop(0)\n"
	for _, tc := range []struct {
		name, text, module, sibling string
		want                        string
	}{
		{"planted by the script", plant + ask, "", "", "library\n"},
		{"planted by the caller", ask, "", "", "library\n"},
		{"started as a module", plant + ask, "main", "", "library\n"},
		{"a pinned sibling", plant + ask, "", "WHO = 'sibling'\n", "sibling\n"},
		{"a pinned sibling of a module", plant + ask, "main", "WHO = 'sibling'\n", "sibling\n"},
		{"control: the script asks for what it planted", plant + point, "", "", strings.Repeat("planted\n", 3) + "input\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := script("py", tc.text)
			o.Module, o.Inputs = tc.module, []bundle.File{{Path: "colorsys.py", Data: []byte("WHO = 'input'\n")}}
			if tc.sibling != "" {
				o.Files = append(o.Files, bundle.File{Path: "colorsys.py", Data: []byte(tc.sibling)})
			}
			res, err := e.Execute(t.Context(), admit(t, w, o))
			if err != nil {
				t.Fatal(err)
			}
			if res.Ending != executor.Exited(0) || string(res.Stdout) != tc.want {
				t.Errorf("got %v, output %q, want %q; standard error: %s", res.Ending, res.Stdout, tc.want, res.Stderr)
			}
		})
	}
}
