package executortest

import (
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
)

func lacksFiles(l Lacks) bool { return l.Files }

// noted holds that one of the notes names each path.
func (k *trial) noted(notes []string, paths ...string) {
	k.Helper()
	if k.setup.Lacks.Notes {
		return
	}
	for _, p := range paths {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "outputs/"+p+" ") }) {
			k.bad("no note names outputs/%s: %q", p, notes)
		}
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
		k.exits(o, 0, "1,2\n")
		if string(o.Inputs[0].Data) != "1,2\n" {
			k.bad("the caller's own bytes were changed")
		}
	}},
	{"outputs", "case 38: regular files below outputs/ come back; a link, a fifo, a file over the limit, a file outside and one with a second name are named as not collected", Outputs, lacksFiles, func(k *trial) {
		res := k.exits(k.program(Outputs), 0, "")
		if got, want := outputs(res.Outputs), map[string]string{"a/b.csv": "1,2\n", "ü.txt": "x"}; !maps.Equal(got, want) {
			k.bad("got %q, want %q", got, want)
		}
		k.noted(res.Notes, "link", "folder-link", "fifo", "sparse", "../beside", "one", "two")
		for _, n := range res.Notes {
			if strings.Contains(n, "/tmp") || strings.Contains(n, "/run/") {
				k.bad("a note holds a path of the host: %q", n)
			}
		}
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
