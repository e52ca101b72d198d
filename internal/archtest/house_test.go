package archtest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// source returns every Go file of the repository by its path in it, those of
// other platforms and of nested modules too.
func source(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			files[filepath.ToSlash(name)], err = parser.ParseFile(fset, p, nil, parser.ParseComments)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("%d files: this is not the repository", len(files))
	}
	return fset, files
}

// No init registers anything: the wiring is read in internal/daemon. There is
// none at all, so that importing a room does nothing.
func TestNoInit(t *testing.T) {
	_, files := source(t)
	for name, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
				t.Errorf("%s has an init", name)
			}
		}
	}
}

// Only executors and tests start processes, by whatever call.
func TestOnlyExecutorsStartProcesses(t *testing.T) {
	starts := []string{"os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "unix.Exec", "exec.Command", "exec.CommandContext"}
	_, files := source(t)
	for name, f := range files {
		if strings.HasPrefix(name, "executor/") || strings.HasPrefix(name, "internal/enginecase/") || strings.HasPrefix(name, "internal/hostcase/") || strings.HasPrefix(name, "internal/pgserver/") || strings.HasPrefix(name, "internal/runnercase/") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(starts, pkg.Name+"."+sel.Sel.Name) {
					t.Errorf("%s calls %s.%s: only executors start processes", name, pkg.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// What is not done is in an issue, where it is seen.
func TestNothingIsLeftForLater(t *testing.T) {
	later := regexp.MustCompile(`\b(` + "TO" + "DO|FIX" + "ME|XX" + "X|HA" + `CK)\b`)
	_, files := source(t)
	for name, f := range files {
		for _, group := range f.Comments {
			if found := later.FindString(group.Text()); found != "" {
				t.Errorf("%s has a comment with %s", name, found)
			}
		}
	}
}

// A file has one subject; with 900 lines it has two.
func TestFilesAreShort(t *testing.T) {
	fset, files := source(t)
	for name, f := range files {
		if n := fset.File(f.FileStart).LineCount(); n >= 900 {
			t.Errorf("%s has %d lines, want fewer than 900", name, n)
		}
	}
}

// A test is left out only by a helper that fails under TRACON_REQUIRE=all: what
// the house's own check runs is never left out in silence.
func TestSkipsOnlyInHelpers(t *testing.T) {
	_, files := source(t)
	for name, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			skips, asks := false, false
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
						skips = true
					}
				case *ast.BasicLit:
					asks = asks || n.Kind == token.STRING && strings.Contains(n.Value, "TRACON_REQUIRE")
				}
				return true
			})
			if skips && !asks {
				t.Errorf("%s: %s skips a test and does not ask for TRACON_REQUIRE", name, fn.Name.Name)
			}
		}
	}
}

// Each room says what it is, and each public one says what each of its names is.
func TestDocComments(t *testing.T) {
	for _, r := range list(t, "linux") {
		if len(r.GoFiles) == 0 {
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range r.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(r.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(fset, files, r.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Package " + r.Name + " "; p.Doc == "" || r.Name != "main" && !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: its comment is %.40q, want one that begins with %q", r.ImportPath, p.Doc, want)
		}
		if r.Name == "main" || strings.Contains("/"+r.name()+"/", "/internal/") {
			continue
		}
		said := func(name, text string) {
			if text == "" {
				t.Errorf("%s: %s has no comment", r.ImportPath, name)
			}
		}
		for _, fn := range p.Funcs {
			said(fn.Name, fn.Doc)
		}
		values(p.Consts, said)
		values(p.Vars, said)
		for _, typ := range p.Types {
			said(typ.Name, typ.Doc)
			for _, fn := range typ.Funcs {
				said(fn.Name, fn.Doc)
			}
			for _, fn := range typ.Methods {
				if !standard(fn) {
					said(typ.Name+"."+fn.Name, fn.Doc)
				}
			}
			values(typ.Consts, said)
			values(typ.Vars, said)
		}
	}
}

// values asks for a comment on each exported constant or variable: its own, one
// behind it on its line, or that of its group.
func values(groups []*doc.Value, said func(name, text string)) {
	for _, g := range groups {
		for _, spec := range g.Decl.Specs {
			v := spec.(*ast.ValueSpec)
			for _, name := range v.Names {
				if name.IsExported() {
					said(name.Name, g.Doc+v.Doc.Text()+v.Comment.Text())
				}
			}
		}
	}
}

// standard reports whether fn is a method that everybody knows, with the
// signature that everybody knows.
func standard(fn *doc.Func) bool {
	return slices.Contains([]string{"Error", "Unwrap"}, fn.Name) && fn.Decl.Type.Params.NumFields() == 0
}

// The floor of go.mod is what the README promises, and no replacement hides in it.
func TestGoMod(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"module " + module + "\n", "\ngo 1.26.5\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("go.mod has no %q", strings.TrimSpace(want))
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "toolchain") || strings.HasPrefix(line, "exclude") {
			t.Errorf("go.mod has the line %q: an embedder would not get what we tested", line)
		}
	}
}
