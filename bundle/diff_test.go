package bundle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/bundle"
)

// B11: what a reviewer reads before granting again.
func TestDiff(t *testing.T) {
	base := mustNew(t, "mode: argv", file("a", "1"), file("b", "2"), file("tracon.yaml", "mode: argv"))
	const decl = bundle.DeclarationPath
	tests := []struct {
		name     string
		old, new bundle.Bundle
		want     []string // kind and path
	}{
		{"equal", base, mustNew(t, "mode: argv", file("tracon.yaml", "mode: argv"), file("b", "2"), file("a", "1")), nil},
		{"changed", base, mustNew(t, "mode: argv", file("a", "1\n"), file("b", "2"), file("tracon.yaml", "mode: argv")), []string{"changed a"}},
		{"added", base, mustNew(t, "mode: argv", file("a", "1"), file("aa", ""), file("b", "2"), file("tracon.yaml", "mode: argv")), []string{"added aa"}},
		{"removed", base, mustNew(t, "mode: argv", file("a", "1"), file("tracon.yaml", "mode: argv")), []string{"removed b"}},
		{"renamed", base, mustNew(t, "mode: argv", file("a", "1"), file("c", "2"), file("tracon.yaml", "mode: argv")), []string{"removed b", "added c"}},
		{"the declaration with its file", base, mustNew(t, "mode: flags", file("a", "1"), file("b", "2"), file("tracon.yaml", "mode: flags")), []string{"changed tracon.yaml"}},
		{"the declaration without its file", base, mustNew(t, "mode: flags", file("a", "1"), file("b", "2"), file("tracon.yaml", "mode: argv")), []string{"changed " + decl}},
		{"the file without the declaration", base, mustNew(t, "mode: argv", file("a", "1"), file("b", "2"), file("tracon.yaml", "mode: flags")), []string{"changed tracon.yaml"}},
		{
			// The same change in a harmless looking file must not hide that of the declaration.
			"the declaration behind a file of another name",
			mustNew(t, "mode: argv", file("notes.txt", "mode: argv")), mustNew(t, "mode: flags", file("notes.txt", "mode: flags")),
			[]string{"changed notes.txt", "changed " + decl},
		},
		{"from nothing", bundle.Bundle{}, mustNew(t, "", file("a", "1")), []string{"added a"}},
		{"from nothing to no file", bundle.Bundle{}, mustNew(t, ""), []string{"added " + decl}},
		{"to nothing", mustNew(t, ""), bundle.Bundle{}, []string{"removed " + decl}},
		{"nothing", bundle.Bundle{}, bundle.Bundle{}, nil},
		{"an empty file", mustNew(t, "", file("a", "")), mustNew(t, ""), []string{"removed a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range bundle.Diff(tt.old, tt.new) {
				got = append(got, c.Kind()+" "+c.Path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Diff returns nothing exactly when the digests are equal; it has the true
// contents, and whoever applies it to the old tree gets the new one.
func TestDiffIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, err := bundle.New(anyFiles(t), anyDeclaration(t), bundle.Limits{})
		if err != nil {
			return // not a bundle: nothing to say
		}
		files, declaration := old.Files(), old.Declaration()
		if rapid.Bool().Draw(t, "related") {
			files, declaration = attack(t, files, declaration)
		} else {
			files, declaration = anyFiles(t), anyDeclaration(t)
		}
		new, err := bundle.New(files, declaration, bundle.Limits{})
		if err != nil {
			return // not a bundle: nothing to say
		}
		changes := bundle.Diff(old, new)
		if got, want := len(changes) == 0, old.Digest() == new.Digest(); got != want {
			t.Fatalf("no change: %t, equal digests: %t", got, want)
		}

		tree := map[string]string{}
		for _, f := range old.Files() {
			tree[f.Path] = string(f.Data)
		}
		decl, last := string(old.Declaration()), ""
		for _, c := range changes {
			if c.Path == bundle.DeclarationPath {
				decl = c.New
				continue
			}
			if c.Path <= last {
				t.Errorf("%q stands after %q", c.Path, last)
			}
			last = c.Path
			if was, ok := tree[c.Path]; ok != c.InOld || was != c.Old {
				t.Errorf("%s: the old content is %q, %t; the change says %q, %t", c.Path, was, ok, c.Old, c.InOld)
			}
			delete(tree, c.Path)
			if c.InNew {
				tree[c.Path] = c.New
			}
			if c.Path == bundle.DeclarationFile && c.Old == decl && decl != string(new.Declaration()) {
				decl = c.New
			}
		}
		want := map[string]string{}
		for _, f := range new.Files() {
			want[f.Path] = string(f.Data)
		}
		if diff := cmp.Diff(want, tree); diff != "" {
			t.Errorf("applied (-want +got):\n%s", diff)
		}
		if decl != string(new.Declaration()) {
			t.Errorf("the declaration's change is not shown")
		}
	})
}
