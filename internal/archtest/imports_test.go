package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tracon-go/tracon"

// platforms are those that the code builds for; a rule holds on all of them.
var platforms = []string{"linux", "darwin", "windows"}

// A room is one package, as go list knows it.
type room struct {
	ImportPath                         string
	Name                               string
	Dir                                string
	GoFiles                            []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

// name returns the room's path in the module; "" is the front door.
func (r room) name() string { return strings.TrimPrefix(strings.TrimPrefix(r.ImportPath, module), "/") }

// list returns all rooms as they are built for goos.
func list(t *testing.T, goos string) []room {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []room
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var r room
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// ours returns the room that imp names, if it is of this module.
func ours(imp string) (string, bool) {
	if imp == module {
		return "", true
	}
	return strings.CutPrefix(imp, module+"/")
}

// outside reports whether imp is neither of this module nor of the standard library.
func outside(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	_, own := ours(imp)
	return strings.Contains(first, ".") && !own
}

// of reports whether the package imp is of the module lib.
func of(imp, lib string) bool { return imp == lib || strings.HasPrefix(imp, lib+"/") }

func words(s string) []string { return strings.Fields(s) }

// R-arrows 1–4 of the architecture: each room imports what its rule says.
func TestImports(t *testing.T) {
	for _, goos := range platforms {
		t.Run(goos, func(t *testing.T) {
			seen := map[string]bool{}
			for _, r := range list(t, goos) {
				name := r.name()
				rule, ok := rooms[name]
				if !ok {
					t.Errorf("room %q has no rule: add one, with its reason", name)
					continue
				}
				seen[name] = true
				for _, imp := range r.Imports {
					in, own := ours(imp)
					if own && in == "" {
						in = frontDoor
					}
					switch {
					case own && !slices.Contains(words(rule.rooms), in):
						t.Errorf("%q imports %q, which is not in its rule (%s)", name, in, rule.why)
					case outside(imp) && !slices.ContainsFunc(words(rule.libs), func(lib string) bool { return of(imp, lib) }):
						t.Errorf("%q imports %s, which is not in its rule (%s)", name, imp, rule.why)
					}
				}
				for _, dep := range r.Deps {
					if rule.spine && outside(dep) && !strings.HasPrefix(dep, "golang.org/x/") {
						t.Errorf("%q depends on %s: it needs the standard library and golang.org/x alone", name, dep)
						break // the others come along
					}
				}
			}
			for name := range rooms {
				if !seen[name] {
					t.Errorf("there is a rule for room %q, which does not exist", name)
				}
			}
		})
	}
}

// wings hang off the spine and never meet. What stands in a wing without being
// one of its rooms is a base: the wing's root, its internal rooms, and those named.
var wings = map[string][]string{
	"executor": {"executor/interpreter"},
	"store":    {},
	"serve":    {"serve/httpapi/client", "serve/runs"}, // the wire types, and the runs under way: every door has them
}

// meetings are the exceptions, each for a reason.
var meetings = map[string]string{
	"executor/executortest store/memstore":                   "a suite makes its requests as production does",
	"serve/internal/params serve/httpapi/client":             "a refusal has a code of the wire",
	"executor/executortest/hostile executor/executortest":    "one suite's requests serve the other",
	"executor/microvm executor/microvm/kit":                  "a part of its own",
	"executor/microvm executor/microvm/internal/frame":       "a part of its own",
	"executor/microvm executor/microvm/internal/snapshot":    "a part of its own",
	"executor/microvm/agent executor/microvm/internal/frame": "a part of its own, in the machine",
}

// place returns the wing that a room stands in, and whether it is a base there.
func place(name string) (wing string, base bool) {
	wing, _, below := strings.Cut(name, "/")
	bases, ok := wings[wing]
	if !ok {
		return "", false
	}
	return wing, !below || strings.HasPrefix(name, wing+"/internal/") || slices.Contains(bases, name)
}

// The wings never import each other, and siblings in a wing never import each
// other, whatever the table of rooms says.
func TestWingsAndSiblingsNeverMeet(t *testing.T) {
	for _, r := range list(t, "linux") {
		name := r.name()
		wing, base := place(name)
		if wing == "" {
			continue
		}
		for _, imp := range r.Imports {
			in, own := ours(imp)
			inWing, inBase := place(in)
			if !own || inWing == "" || in == name || meetings[name+" "+in] != "" {
				continue
			}
			if inWing != wing {
				t.Errorf("%s imports %s: the wings never import each other", name, in)
			} else if !inBase {
				t.Errorf("%s imports %s: siblings never import each other", name, in)
			} else if base && strings.Count(in, "/") > 0 && !strings.HasPrefix(in, wing+"/internal/") {
				t.Errorf("%s imports %s: a base stands below the rooms of its wing", name, in)
			}
		}
	}
}

// Only the wiring, tests and examples name a concrete store or executor; the
// front door may name the platform's default.
func TestOnlyTheWiringNamesConcreteRooms(t *testing.T) {
	may := map[string]string{"": "executor/process executor/sandbox", "executor/executortest": "store/memstore", "internal/gatecase": "store/memstore",
		"executor/microvm": "executor/microvm/internal/frame executor/microvm/internal/snapshot executor/microvm/kit", "executor/microvm/agent": "executor/microvm/internal/frame",
		"internal/runnercase": "executor/process executor/sandbox serve/limit serve/runnerapi store/memstore", "internal/toolcase": "executor/process store/memstore"}
	for _, r := range list(t, "linux") {
		name := r.name()
		if name == "internal/daemon" || strings.HasPrefix(name, "examples/") {
			continue
		}
		for _, imp := range r.Imports {
			in, own := ours(imp)
			wing, base := place(in)
			if own && wing != "" && !base && !slices.Contains(suites, in) && !slices.Contains(words(may[name]), in) {
				t.Errorf("%q names %s: that is the wiring's", name, in)
			}
		}
	}
}

// One library, one room.
func TestEachLibraryHasOneRoom(t *testing.T) {
	used := map[string]bool{}
	for _, r := range list(t, "linux") {
		name := r.name()
		check := func(imports []string, test bool) {
			for _, imp := range imports {
				if !outside(imp) || strings.HasPrefix(imp, "golang.org/x/") {
					continue
				}
				if slices.ContainsFunc(testLibraries, func(lib string) bool { return of(imp, lib) }) {
					if !test && !slices.Contains(suites, name) {
						t.Errorf("%q ships %s, which is for tests", name, imp)
					}
					continue
				}
				lib := ""
				for l := range libraries {
					if of(imp, l) {
						lib = l
					}
				}
				if used[lib] = true; !slices.Contains(words(libraries[lib]), name) {
					t.Errorf("%q imports %s, which belongs to the room %q", name, imp, libraries[lib])
				}
			}
		}
		check(r.Imports, false)
		check(slices.Concat(r.TestImports, r.XTestImports), true)
	}
	for lib := range libraries {
		if !used[lib] {
			t.Errorf("nobody imports %s: drop its rule", lib)
		}
	}
}

// What the standard library offers and only some rooms may take.
func TestBans(t *testing.T) {
	for _, goos := range platforms {
		for _, r := range list(t, goos) {
			for _, imp := range r.Imports {
				ban, ok := bans[imp]
				may := func(pattern string) bool {
					below, ok := strings.CutSuffix(pattern, "/...")
					return pattern == r.name() || ok && strings.HasPrefix(r.name(), below+"/")
				}
				if ok && !slices.ContainsFunc(words(ban.rooms), may) {
					t.Errorf("%s: %q imports %s: %s", goos, r.name(), imp, ban.why)
				}
			}
		}
	}
}

// The binary holds nothing that is there for tests, but for the suites that an
// operator runs.
func TestBinaryLinksNoTests(t *testing.T) {
	forOperators := []string{"executor/executortest", "executor/executortest/hostile"}
	for _, r := range list(t, "linux") {
		if r.Name != "main" {
			continue
		}
		for _, dep := range r.Deps {
			in, own := ours(dep)
			test := own && slices.Contains(suites, in) && !slices.Contains(forOperators, in)
			if test || dep == "testing" || strings.HasPrefix(dep, "testing/") || slices.ContainsFunc(testLibraries, func(lib string) bool { return of(dep, lib) }) {
				t.Errorf("%s links %s", path.Base(r.ImportPath), dep)
			}
		}
	}
}

// Of the hostile suite, the binary has no script by which a host could suffer: no
// verb can reach what is not there.
func TestBinaryHoldsNoHurtfulScript(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "tracon")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, module+"/cmd/tracon")
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	held, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	scripts := func(folder string) (n int) {
		files, err := filepath.Glob(filepath.Join(root, "executor/executortest/hostile", folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(held, text) {
				n++
			}
		}
		if len(files) < 8 {
			t.Fatalf("there are %d scripts in %q", len(files), folder)
		}
		return n
	}
	if n := scripts("probes"); n < 50 {
		t.Errorf("the binary holds %d harmless scripts: it is looked for in the wrong way", n)
	}
	if n := scripts("hurtful"); n > 0 || bytes.Contains(held, []byte("# Hurtful: ")) {
		t.Errorf("the binary holds %d hurtful scripts", n)
	}
}
