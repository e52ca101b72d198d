package bundle

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// CheckPath says why p cannot be the path of a file in a bundle, or nil. A path
// is relative, separated by slashes, plain (no empty, "." or ".." element), and
// means the same file on every system that a run may be laid out on: valid
// UTF-8, no control or direction character, no line or paragraph separator, no
// backslash or colon, no element that ends in a dot or a blank, that has more than
// 255 bytes, or that Windows takes for a device, such as "nul" or "aux.py". It
// applies no limit to the whole path; [New] does.
func CheckPath(p string) error {
	if err := checkKept(p); err != nil {
		return err
	}
	if i := strings.IndexAny(p, "\u2028\u2029"); i >= 0 {
		r, _ := utf8.DecodeRuneInString(p[i:])
		return fmt.Errorf("%w: %q holds %+q", ErrPath, p, r)
	}
	for elem := range strings.SplitSeq(p, "/") {
		if len(elem) > maxElement {
			return fmt.Errorf("%w: %.30q… has %d bytes between two slashes, at most %d", ErrPath, elem, len(elem), maxElement)
		}
	}
	return nil
}

// checkKept is CheckPath by the rules of every version so far: those that came later are
// not here. A rule that were added here would have a store, which is sound, called damaged.
func checkKept(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("%w: it is empty", ErrPath)
	case !utf8.ValidString(p):
		return fmt.Errorf("%w: %q is not UTF-8", ErrPath, p)
	case !fs.ValidPath(p) || p == ".":
		return fmt.Errorf("%w: %q is not a plain relative path", ErrPath, p)
	}
	for _, r := range p {
		if r == '\\' || r == ':' || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return fmt.Errorf("%w: %q holds %+q", ErrPath, p, r)
		}
	}
	for elem := range strings.SplitSeq(p, "/") {
		if last := elem[len(elem)-1]; last == '.' || last == ' ' || elem[0] == ' ' {
			return fmt.Errorf("%w: %q begins with a blank, or ends with a blank or a dot", ErrPath, elem)
		}
		if isDevice(elem) {
			return fmt.Errorf("%w: %q is the name of a device on Windows", ErrPath, elem)
		}
	}
	return nil
}

// maxElement is the most bytes of one name: Linux lays out no longer one.
const maxElement = 255

// isDevice reports whether Windows takes elem for a device, in whatever folder
// and with whatever extension.
func isDevice(elem string) bool {
	name, _, _ := strings.Cut(elem, ".")
	name = strings.ToLower(strings.TrimRight(name, " "))
	switch name {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	port, ok := strings.CutPrefix(name, "com")
	if !ok {
		port, ok = strings.CutPrefix(name, "lpt")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}

// Ignored reports whether a folder entry of this name is neither staged nor
// pinned: what version control, the interpreter or a desktop leaves beside a
// skill. Such an entry is invisible to the script, so it needs no pin.
func Ignored(name string) bool {
	return name == ".git" || name == "__pycache__" || name == ".DS_Store"
}

// fold maps the names that some file system takes for one name to one name:
// those that differ by case, by normal form, by width (a person takes "ａ" for "a"),
// or by characters that show nothing (HFS+ skips them).
func fold(p string) string {
	if isASCII(p) {
		return foldKept(p)
	}
	return foldKept(width.Fold.String(p))
}

func isASCII(p string) bool {
	for i := range len(p) {
		if p[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// foldKept is fold by the rules of every version so far, as [checkKept] is [CheckPath].
func foldKept(p string) string {
	if isASCII(p) {
		return strings.ToLower(p) // 20 times faster, and nearly every path is
	}
	p = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		if r == 'ı' {
			return 'i' // upper case of both is I
		}
		return r
	}, p)
	p = norm.NFD.String(cases.Fold().String(norm.NFD.String(p)))
	return strings.ReplaceAll(p, "i\u0307", "i") // the simple lower case of İ is i
}

// Twins reports whether a and b are different names that some file system takes
// for one: see [ErrTwins].
func Twins(a, b string) bool { return a != b && fold(a) == fold(b) }

// Names are the paths of files of which no two mean one file on some file system. The
// zero Names has none. It is not safe for concurrent use.
type Names struct {
	seen map[string]string // folded path or folder above one => itself, with "/" behind a folder's
	kept bool              // see Limits.Kept
}

// Add takes p, a path that [CheckPath] lets through. It takes nothing, and the error wraps
// [ErrTwins], where p was taken before, or where some file system takes it, or a folder
// above it, for another that was.
func (n *Names) Add(p string) error {
	var room [8][2]string
	fresh, fold := room[:0], fold
	if n.kept {
		fold = foldKept
	}
	for q, folder := p, false; q != "."; q, folder = path.Dir(q), true {
		name := q
		if folder {
			name += "/"
		}
		folded := fold(q)
		was, ok := n.seen[folded]
		if ok && folder && was == name {
			break // a folder that was taken before, and all above it
		}
		if ok {
			return fmt.Errorf("%w: %q and %q", ErrTwins, was, name)
		}
		fresh = append(fresh, [2]string{folded, name})
	}
	if n.seen == nil {
		n.seen = map[string]string{}
	}
	for _, f := range fresh {
		n.seen[f[0]] = f[1]
	}
	return nil
}

// checkTwins refuses two files, or a file and a folder, whose names some file
// system takes for one. The paths are distinct.
func checkTwins(files []Entry, kept bool) error {
	n := Names{make(map[string]string, 2*len(files)), kept}
	for _, f := range files {
		if err := n.Add(f.Path); err != nil {
			return err
		}
	}
	return nil
}
