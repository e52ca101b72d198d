package bundle

import "iter"

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
	for c := range Changes(old, new) { // bundles are read without errors
		changes = append(changes, c)
	}
	return changes
}

// Changes yields what [Diff] returns, one change at a time: no more than the two
// states of one file are in memory. It ends with the first error of reading.
func Changes(old, new Content) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		o, n := old.Listing(), new.Listing()
		files, told := differing(o, n), false
		for _, c := range files {
			var err error
			if c.Old, err = textOf(old, c.Path, c.InOld); err == nil {
				c.New, err = textOf(new, c.Path, c.InNew)
			}
			if err != nil {
				yield(Change{}, err)
				return
			}
			// Only the file that a reviewer knows for the declaration speaks for it: the
			// same change in a file of another name would hide what it does.
			told = told || c.Path == DeclarationFile && c.Old == o.declaration() && c.New == n.declaration()
			if !yield(c, nil) {
				return
			}
		}
		decl := Change{DeclarationPath, o.declaration(), n.declaration(), !o.IsZero(), !n.IsZero()}
		if o.Digest() != n.Digest() && (len(files) == 0 || decl.Old != decl.New && !told) {
			yield(decl, nil)
		}
	}
}

// differing returns the files that differ, without their content.
func differing(old, new Listing) []Change {
	var changes []Change
	a, b := old.entries(), new.entries()
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Path < b[0].Path:
			changes = append(changes, Change{Path: a[0].Path, InOld: true})
			a = a[1:]
		case len(a) == 0 || b[0].Path < a[0].Path:
			changes = append(changes, Change{Path: b[0].Path, InNew: true})
			b = b[1:]
		default:
			if a[0].Digest != b[0].Digest {
				changes = append(changes, Change{Path: a[0].Path, InOld: true, InNew: true})
			}
			a, b = a[1:], b[1:]
		}
	}
	return changes
}

func textOf(c Content, path string, there bool) (string, error) {
	if !there {
		return "", nil
	}
	if b, ok := c.(Bundle); ok {
		text, _, _ := b.Text(path)
		return text, nil
	}
	data, err := Read(c, path)
	return string(data), err
}
