package bundle_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tracon-go/tracon/bundle"
)

// Cases 1 and 2, R14: a path is plain, or it is refused. Nothing is cleaned,
// joined or guessed.
func TestCheckPath(t *testing.T) {
	for _, p := range []string{
		"x.py", "scripts/x.py", "SKILL.md", ".hidden", "a/.b/c", "..a", "a..b", "...x", "with blank.txt", "ünï.txt", "名前.py", "a+b@c,d=e;f",
		"console.py", "com.py", "com10.py", "lpt.txt", "nullable.py", "auxiliary", "\U0001f468\u200d\U0001f4bb.md", strings.Repeat("x", 255), strings.Repeat("x/", 2047) + "x",
	} {
		if err := bundle.CheckPath(p); err != nil {
			t.Errorf("CheckPath(%q): %v", p, err)
		}
	}
	for _, tt := range []struct{ name, path string }{
		{"empty", ""},
		{"the root", "."},
		{"the folder above", ".."},
		{"case 1", "../../etc"},
		{"case 2: absolute", "/tmp/evil.py"},
		{"case 2: backslashes", `..\..\evil.py`},
		{"case 2: dots in the middle", "scripts/../../x.py"},
		{"case 2: NUL", "x.py\x00.txt"},
		{"case 2: a drive", "C:x.py"},
		{"case 2: a dot at the end", "x.py."},
		{"case 2: a blank at the end", "x.py "},
		{"a drive and a slash", "C:/x.py"},
		{"a stream of NTFS", "x.py:evil"},
		{"the declaration's name in a difference", bundle.DeclarationPath},
		{"a share", `\\host\x`},
		{"doubled slash", "a//b"},
		{"slash at the end", "a/"},
		{"dot in the middle", "a/./b"},
		{"dot at the start", "./a"},
		{"blank at the start of an element", "a/ b"},
		{"folder with a dot at the end", "a./b"},
		{"folder of three dots", ".../b"},
		{"line feed", "a\nb"},
		{"carriage return", "a\rb"},
		{"escape", "a\x1b[31mb"},
		{"delete", "a\x7fb"},
		{"C1 control", "a\u0085b"},
		{"right to left override", "a\u202eyp.b"},
		{"isolate", "a\u2066b"},
		{"not UTF-8", "a\xffb"},
		{"half a surrogate", "a\xed\xa0\x80b"},
		{"overlong", "a\xc0\xafb"},
		{"device", "nul"},
		{"device with an extension", "scripts/AUX.py"},
		{"device with two", "con.tar.gz"},
		{"device and blanks", "con .txt"},
		{"folder of a device's name", "Com1/x.py"},
		{"device with a superscript", "lpt².txt"},
		{"console", "CONIN$"},
		{"B06: a name of 256 bytes", "a/" + strings.Repeat("x", 256) + "/b"},
		{"B06: 86 characters of 3 bytes", strings.Repeat("名", 86)},
		{"O06: line separator", "a\u2028b"},
		{"O06: paragraph separator", "a\u2029b"},
	} {
		if err := bundle.CheckPath(tt.path); !errors.Is(err, bundle.ErrPath) || !errors.Is(err, bundle.ErrContent) {
			t.Errorf("%s: CheckPath(%q): got %v, want ErrPath within ErrContent", tt.name, tt.path, err)
		}
		if _, err := bundle.New([]bundle.File{file(tt.path, "")}, nil, bundle.Limits{}); !errors.Is(err, bundle.ErrPath) {
			t.Errorf("%s: New with %q: got %v, want ErrPath", tt.name, tt.path, err)
		}
	}
}

func TestNewRefusesTheSamePathTwice(t *testing.T) {
	if _, err := bundle.New([]bundle.File{file("a", "1"), file("b", ""), file("a", "1")}, nil, bundle.Limits{}); !errors.Is(err, bundle.ErrPath) {
		t.Errorf("got %v, want ErrPath", err)
	}
}

// An error shows a name to an operator's terminal: it must not act there.
func TestPathErrorsAreQuoted(t *testing.T) {
	for _, p := range []string{"a\x1b[2Jb", "a\u202eb", "a\nb", "a\xffb"} {
		err := bundle.CheckPath(p)
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\n\u202e") || !utf8.ValidString(err.Error()) {
			t.Errorf("CheckPath(%q) says %q", p, err)
		}
	}
}

// What CheckPath lets through stays below its folder on every system.
func FuzzCheckPath(f *testing.F) {
	for _, p := range []string{"a/b", "../x", "C:x", "a\x00", "nul.txt", "x ", "a\u0301", "\u212a"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if bundle.CheckPath(p) != nil {
			return
		}
		if !fs.ValidPath(p) || p == "." || strings.ContainsAny(p, "\\:\x00\r\n") || !utf8.ValidString(p) {
			t.Errorf("CheckPath lets %q through", p)
		}
		for elem := range strings.SplitSeq(p, "/") {
			if elem == "" || strings.Trim(elem, ".") == "" || strings.TrimRight(elem, ". ") != elem {
				t.Errorf("CheckPath lets %q through", p)
			}
		}
		if len(p) <= bundle.DefaultPathBytes && strings.Count(p, "/") < bundle.DefaultDepth {
			b, err := bundle.New([]bundle.File{{Path: p}}, nil, bundle.Limits{})
			if err != nil {
				t.Fatalf("New refuses %q: %v", p, err)
			}
			if _, err := fs.Stat(b.FS(), p); err != nil {
				t.Errorf("the file system has no %q: %v", p, err)
			}
		}
	})
}

// Case 8: names that some file system takes for one are refused, never merged.
func TestTwins(t *testing.T) {
	for _, tt := range []struct {
		name  string
		paths []string
	}{
		{"case", []string{"a/run.py", "a/Run.py"}},
		{"B05: width", []string{"a.py", "\uff41.py"}},
		{"B05: width of a mark", []string{"a(b)", "a\uff08b\uff09"}},
		{"B05: half width", []string{"\u30ab", "\uff76"}},
		{"case of a folder", []string{"a/x", "A/y"}},
		{"case of a folder far above", []string{"a/b/c/x", "a/B/c/y"}},
		{"NFC and NFD", []string{"\u00e9.py", "e\u0301.py"}},
		{"NFC and NFD of a folder", []string{"\u00e9/x", "e\u0301/y"}},
		{"NFD and case", []string{"\u00c9.py", "e\u0301.py"}},
		{"order of marks", []string{"a\u0323\u0307", "a\u0307\u0323"}},
		{"Kelvin", []string{"k", "\u212a"}},
		{"long s", []string{"skill", "\u017fkill"}},
		{"sharp s", []string{"stra\u00dfe", "STRASSE"}},
		{"final sigma", []string{"\u03c2", "\u03a3"}},
		{"Greek iota below", []string{"\u1fb3", "\u0391\u0345"}},
		{"dotless i", []string{"\u0131", "I"}},
		{"dotted I", []string{"\u0130", "i"}},
		{"zero width joiner", []string{"a.py", "a\u200d.py"}},
		{"soft hyphen", []string{"a.py", "a\u00ad.py"}},
		{"byte order mark", []string{"a.py", "\ufeffa.py"}},
		{"variation selector", []string{"a.py", "a\ufe0f.py"}},
		{"file and folder", []string{"a", "a/b"}},
		{"file and folder by case", []string{"A", "a/b"}},
		{"file and folder by normal form", []string{"\u00e9", "e\u0301/b"}},
		{"file and folder far apart: - and . sort before /", []string{"a", "a-b", "a.b", "a/b"}},
	} {
		var files []bundle.File
		for _, p := range tt.paths {
			files = append(files, file(p, ""))
		}
		for range 2 {
			if _, err := bundle.New(files, nil, bundle.Limits{}); !errors.Is(err, bundle.ErrTwins) || !errors.Is(err, bundle.ErrContent) {
				t.Errorf("%s: %q: got %v, want ErrTwins within ErrContent", tt.name, tt.paths, err)
			}
			files[0], files[len(files)-1] = files[len(files)-1], files[0]
		}
	}
	for _, paths := range [][]string{
		{"a/x", "a/y", "a/b/x", "a/b/y"}, {"a", "b/a", "c/a"}, {"ab", "a/b"}, {"é/x", "é/y"}, {"a.py", "a.PYX"},
	} {
		var files []bundle.File
		for _, p := range paths {
			files = append(files, file(p, ""))
		}
		if _, err := bundle.New(files, nil, bundle.Limits{}); err != nil {
			t.Errorf("%q are no twins: %v", paths, err)
		}
	}
}

// Case 8, for every path: itself in another case or normal form is a twin.
func FuzzTwins(f *testing.F) {
	for _, p := range []string{"a/b", "É/x", "straße", "ΑΙ", "ᾳ", "ǰ", "ı", "İ"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		for _, twin := range []string{strings.ToUpper(p), strings.ToLower(p), norm.NFD.String(p), norm.NFC.String(p)} {
			if twin == p || bundle.CheckPath(p) != nil || bundle.CheckPath(twin) != nil {
				continue
			}
			_, err := bundle.New([]bundle.File{{Path: p}, {Path: twin}}, nil, bundle.Limits{PathBytes: 1 << 20, Depth: 1 << 20})
			if !errors.Is(err, bundle.ErrTwins) {
				t.Errorf("%+q and %+q: got %v, want ErrTwins", p, twin, err)
			}
		}
	})
}

func TestIgnored(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, "__pycache__": true, ".DS_Store": true,
		".gitignore": false, ".GIT": false, "git": false, "SKILL.md": false, "": false, "node_modules": false,
	} {
		if got := bundle.Ignored(name); got != want {
			t.Errorf("Ignored(%q) is %t, want %t", name, got, want)
		}
	}
}

// Case 8: two names that some file system takes for one are twins; one name is no twin of itself.
func TestTwinNames(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"a", "a", false}, {"a", "b", false}, {"a", "A", true}, {"caf\u00e9", "cafe\u0301", true}, {"CAFÉ", "café", true},
		{"ſkill", "skill", true}, {"a\u200d", "a", true}, {"a-b", "a_b", false}, {"", "a", false},
	} {
		if got := bundle.Twins(tt.a, tt.b); got != tt.want || bundle.Twins(tt.b, tt.a) != tt.want {
			t.Errorf("Twins(%+q, %+q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// Case 8: a name that is refused takes no place, not even that of its folder.
func TestNames(t *testing.T) {
	var n bundle.Names
	for _, tt := range []struct {
		path string
		want bool
	}{
		{"a/x", true}, {"a/y", true}, {"a/x", false}, {"A/z", false}, {"a", false}, {"a/X", false}, {"a/x/y", false},
		{"new/a/b", true}, {"New/other", false}, {"new/other", true}, {"q/A/z", true}, {"q/a/z", false}, {"z", true},
	} {
		if err := n.Add(tt.path); (err == nil) != tt.want || err != nil && !errors.Is(err, bundle.ErrTwins) {
			t.Errorf("%s: got %v, want taken: %v", tt.path, err, tt.want)
		}
	}
}
