package executortest

import (
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
)

func lacksFiles(l Lacks) bool { return l.Files }

// tells holds that for each text there is a note that holds it, and that notes
// hold no path of the host.
func (k *trial) tells(res executor.Result, texts ...string) {
	k.Helper()
	if k.setup.Lacks.Notes {
		return
	}
	for _, text := range texts {
		if !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, text) }) {
			k.bad("no note tells of %q: %q; standard error: %.500q", text, res.Notes, res.Stderr)
		}
	}
	for _, n := range res.Notes {
		if strings.Contains(n, "/tmp") || strings.Contains(n, "/run/") || strings.Contains(n, "/dev/shm") {
			k.bad("a note holds a path of the host: %q", n)
		}
	}
}

// silent holds that no note holds the text.
func (k *trial) silent(res executor.Result, text string) {
	k.Helper()
	if slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, text) }) {
		k.bad("there is a note that nothing gave reason for: %q", res.Notes)
	}
}

// outputs returns the collected files by path.
func outputs(files []bundle.File) map[string]string {
	got := map[string]string{}
	for _, f := range files {
		got[f.Path] = string(f.Data)
	}
	return got
}

var fileCases = []testCase{
	{"siblings", "case 36: a script uses a file beside it, and one two folders up in the skill", Siblings, lacksFiles, func(k *trial) {
		k.exits(k.program(Siblings), 0, "beside deep\n")
	}},
	{"asset", "case 37: the working directory is the skill's root", Asset, lacksFiles, func(k *trial) {
		k.exits(k.program(Asset), 0, "an asset\n")
	}},
	{"direct start", "case 39b: a script starts a sibling file directly", Direct, lacksFiles, func(k *trial) {
		k.exits(k.program(Direct), 0, "hello\n")
	}},
	{"inputs", "B5: input files are below inputs/, as a private copy that the script may change", Inputs, lacksFiles, func(k *trial) {
		o := k.program(Inputs)
		o.Inputs = []bundle.File{{Path: "data.txt", Data: []byte("1,2\n")}, {Path: "more/ü.txt", Data: []byte("x")}}
		res := k.exits(o, 0, "1,2\n")
		if string(o.Inputs[0].Data) != "1,2\n" {
			k.bad("the caller's own bytes were changed")
		}
		if len(res.Outputs) != 1 || res.Outputs[0].Path != "inputs/data.txt" || !strings.HasPrefix(string(res.Outputs[0].Data), "1,2\nmore") {
			k.bad("case 39a: the changed input comes back, and it alone: got %q", res.Outputs)
		}
	}},
	{"changed inputs", "case 39a: input files that are new or changed come back below inputs/, an unchanged one does not, one that is gone is named, and a file that the script wrote below outputs/ goes before an input of the same name", Edits, lacksFiles, func(k *trial) {
		o := k.program(Edits)
		for _, p := range []string{"both.txt", "folder/edited.txt", "folder/same.txt", "gone.txt"} {
			o.Inputs = append(o.Inputs, bundle.File{Path: p, Data: []byte("old")})
		}
		res := k.exits(o, 0, "")
		want := map[string]string{"inputs/both.txt": "output", "inputs/folder/edited.txt": "new", "inputs/folder/new.txt": "n"}
		if got := outputs(res.Outputs); !maps.Equal(got, want) || len(res.Outputs) != len(want) {
			k.bad("got %q, want %q", got, want)
		}
		k.tells(res, "inputs/gone.txt", "inputs/both.txt")
	}},
	{"patterns", "B5: of the files below outputs/, those that match a declared pattern come back, and the others are named", Many, lacksFiles, func(k *trial) {
		o := k.program(Many)
		o.Outputs, o.Policy.MaxOutputFiles = []string{"[13]", "no/*.csv"}, 2
		res := k.exits(o, 0, "")
		if got, want := outputs(res.Outputs), map[string]string{"1": "0123456789", "3": "0123456789"}; !maps.Equal(got, want) {
			k.bad("got %q, want %q", got, want)
		}
		k.tells(res, "pattern")
	}},
	{"module", "case 36: a script that is started as a module imports its siblings by relative imports, packages below it and from the skill's root, wherever it lies", Module, lacksFiles, func(k *trial) {
		for _, folder := range []string{"scripts", "app/cli/scripts"} {
			o := k.program(Module)
			for i, f := range o.Files {
				if rest, ok := strings.CutPrefix(f.Path, "scripts/"); ok {
					o.Files[i].Path = folder + "/" + rest
				}
			}
			o.Script, o.Module, o.Arguments = folder+"/main.py", strings.ReplaceAll(folder, "/", ".")+".main", []string{"-m", "x"}
			k.exits(o, 0, "beside deep lib -m x\n")
		}
	}},
	{"relative import", "case 36: where a script fails because it wants to be started as a module, a note says how", Relative, lacksFiles, func(k *trial) {
		res := k.exits(k.program(Relative), 1, "")
		k.tells(res, "module: scripts.main")
		k.silent(res, "has no package")
	}},
	{"missing package", "case 39c: a script that ends because a package is missing has its own exit code and text, and a note names the package", Missing, nil, func(k *trial) {
		res := k.exits(k.program(Missing), 1, "")
		if !strings.Contains(string(res.Stderr), "missing") {
			k.bad("got standard error %q", res.Stderr)
		}
		k.tells(res, "missing")
		k.silent(k.exits(k.program(Caught), 0, ""), "missing")
	}},
	{"thrown away", "case 39: what a script wrote beside itself is named as thrown away", Traces, lacksFiles, func(k *trial) {
		o := k.program(Traces)
		o.Inputs = []bundle.File{{Path: "data.txt", Data: []byte("1,2\n")}}
		k.tells(k.exits(o, 0, "done\n"), "report.txt")
		k.silent(k.exits(k.program(Asset), 0, "an asset\n"), "")
	}},
	{"CR LF", "case 32: a shell script that fails for its CR LF has a note that says so", CarriageReturns, nil, func(k *trial) {
		res := k.run(k.program(CarriageReturns))
		if code, ok := res.Ending.ExitCode(); !ok || code == 0 {
			k.bad("got %v", res.Ending)
		}
		k.tells(res, "CR LF")
	}},
	{"outputs", "case 38: regular files below outputs/ come back; a link, a fifo, a file over the limit, a file outside and one with a second name are named as not collected", Outputs, lacksFiles, func(k *trial) {
		res := k.exits(k.program(Outputs), 0, "")
		if got, want := outputs(res.Outputs), map[string]string{"a/b.csv": "1,2\n", "ü.txt": "x"}; !maps.Equal(got, want) {
			k.bad("got %q, want %q", got, want)
		}
		for _, name := range []string{"link", "folder-link", "fifo", "sparse", "one", "two"} {
			if name == "fifo" && k.setup.Lacks.Pipes {
				continue
			}
			k.tells(res, "outputs/"+name+" ")
		}
		k.tells(res, "beside") // where that lies is the executor's affair
	}},
	{"number of outputs", "R19, B5: at most the policy's number of output files comes back, and the others are named", Many, lacksFiles, func(k *trial) {
		o := k.program(Many)
		o.Policy.MaxOutputFiles = 3
		res := k.exits(o, 0, "")
		if len(res.Outputs) != 3 || len(res.Notes) < 2 && !k.setup.Lacks.Notes {
			k.bad("got %d files and notes %q", len(res.Outputs), res.Notes)
		}
	}},
	{"size of outputs", "R19, B5: at most the policy's bytes of output files come back, and the others are named", Many, lacksFiles, func(k *trial) {
		o := k.program(Many)
		o.Policy.MaxOutputs = 25
		res := k.exits(o, 0, "")
		if len(res.Outputs) != 2 || len(res.Notes) < 3 && !k.setup.Lacks.Notes {
			k.bad("got %d files and notes %q", len(res.Outputs), res.Notes)
		}
	}},
	{"traces", "case 39: a script may change its own files, HOME, TMPDIR and inputs/, and write beside itself; the next run starts from the same bytes", Traces, lacksFiles, func(k *trial) {
		o := k.program(Traces)
		o.Inputs = []bundle.File{{Path: "data.txt", Data: []byte("1,2\n")}}
		for range 2 {
			k.exits(o, 0, "done\n")
		}
	}},
	{"locked folders", "case 40: folders of mode 000, and folders deeper than a path can be long, do not stay", Locked, lacksFiles, func(k *trial) {
		k.exits(k.program(Locked), 0, "")
	}},
}

var cases = slices.Concat(ioCases, endingCases, fileCases)
