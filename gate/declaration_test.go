package gate

import (
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

// A script that is started as a module is the file that the log names, and no
// other that Python would find first.
func TestModuleRival(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string
		others []string
		want   string
	}{
		{"alone", "a/b.py", nil, ""},
		{"others", "a/b.py", []string{"a/__init__.py", "a/c.py", "a/b.txt", "a/b.x.py", "a/bc.py", "b.py", "a/b.so.txt"}, ""},
		{"a package of the name", "a/b.py", []string{"a/b/__init__.py"}, "a/b/__init__.py"},
		{"a folder of the name, without __init__", "a/b.py", []string{"a/b/c.py", "a/b/__main__.py"}, ""},
		{"a compiled module", "a/b.py", []string{"a/b.so"}, "a/b.so"},
		{"a compiled module of one version", "a/b.py", []string{"a/b.cpython-312-x86_64-linux-gnu.so"}, "a/b.cpython-312-x86_64-linux-gnu.so"},
		{"a compiled module of Windows", "a/b.py", []string{"a/b.pyd"}, "a/b.pyd"},
		{"bytecode comes after the source", "a/b.py", []string{"a/b.pyc"}, ""},
		{"a module beside the folder", "a/b.py", []string{"a.py"}, "a.py"},
		{"bytecode beside the folder", "a/b.py", []string{"a.pyc"}, "a.pyc"},
		{"a package before the module beside it", "a/b.py", []string{"a/__init__.py", "a.py"}, ""},
		{"a main", "a/b/__main__.py", nil, ""},
		{"a main in a package", "a/b/__main__.py", []string{"a/__init__.py", "a/b/__init__.py", "a/b.py"}, ""},
		{"a module before the folder of a main", "a/b/__main__.py", []string{"a/b.py"}, "a/b.py"},
		{"a compiled main", "a/b/__main__.py", []string{"a/b/__main__.abi3.so"}, "a/b/__main__.abi3.so"},
		{"a package that is named main", "a/b/__main__.py", []string{"a/b/__main__/__init__.py"}, "a/b/__main__/__init__.py"},
	} {
		files := []bundle.File{{Path: tt.script}}
		for _, p := range tt.others {
			files = append(files, bundle.File{Path: p})
		}
		b, err := bundle.New(files, nil, bundle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := moduleRival(b, tt.script); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
