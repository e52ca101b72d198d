package skill

import (
	"testing"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
)

// What was kept reads as what was imported: the same digest, the same scripts.
func TestFromBundle(t *testing.T) {
	read, err := Read("../examples/skills/unit-converter", bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromBundle(read.Name, read.Bundle)
	if err != nil || got.Bundle.Digest() != read.Bundle.Digest() || got.Name != read.Name || len(got.Scripts) != len(read.Scripts) {
		t.Errorf("got %+v, %v; want that of the folder", got.Meta, err)
	}
	b, err := Stored("total.py", []byte("print(1)\n"), gate.Declaration{Description: "Adds."})
	if err != nil {
		t.Fatal(err)
	}
	got, err = FromBundle("totals", b)
	if err != nil || got.Name != "totals" || got.Description != "Adds." || len(got.Scripts) != 1 || got.Scripts[0].Declaration.Mode != gate.Stdin {
		t.Errorf("got %+v, %v; want one script that takes its arguments on standard input", got, err)
	}
}
