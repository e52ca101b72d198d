package bundle

import "slices"

// A Change is one file that differs between two bundles.
type Change struct {
	Path     string
	Old, New string // content; empty where the file is not there
	InOld    bool   // the old bundle has the file
	InNew    bool   // the new bundle has the file
}

// Kind returns "added", "removed" or "changed".
func (c Change) Kind() string {
	switch {
	case !c.InOld:
		return "added"
	case !c.InNew:
		return "removed"
	}
	return "changed"
}

// DeclarationPath names the declaration in a [Change], where it differs without
// the file [DeclarationFile] saying so. No file can have this path.
const DeclarationPath = ":declaration"

// DeclarationFile is the file of a skill whose bytes are its declaration.
const DeclarationFile = "tracon.yaml"

// Diff returns what a reviewer reads: every file that differs, in the bytewise
// order of paths. It returns nothing exactly when the digests are equal.
func Diff(old, new Bundle) []Change {
	var changes []Change
	a, b := old.entries(), new.entries()
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].path < b[0].path:
			changes = append(changes, Change{Path: a[0].path, Old: a[0].data, InOld: true})
			a = a[1:]
		case len(a) == 0 || b[0].path < a[0].path:
			changes = append(changes, Change{Path: b[0].path, New: b[0].data, InNew: true})
			b = b[1:]
		default:
			if a[0].digest != b[0].digest {
				changes = append(changes, Change{a[0].path, a[0].data, b[0].data, true, true})
			}
			a, b = a[1:], b[1:]
		}
	}
	decl := Change{DeclarationPath, string(old.Declaration()), string(new.Declaration()), !old.IsZero(), !new.IsZero()}
	// Only the file that a reviewer knows for the declaration speaks for it: the
	// same change in a file of another name would hide what it does.
	told := slices.ContainsFunc(changes, func(c Change) bool {
		return c.Path == DeclarationFile && c.Old == decl.Old && c.New == decl.New
	})
	if old.Digest() != new.Digest() && (len(changes) == 0 || decl.Old != decl.New && !told) {
		changes = append(changes, decl)
	}
	return changes
}

func (b Bundle) entries() []entry {
	if b.c == nil {
		return nil
	}
	return b.c.files
}
