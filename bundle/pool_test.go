package bundle

import (
	"runtime"
	"slices"
	"testing"
)

// B10: what is equal stands in memory once, and no longer than it is in use; what
// differs in a byte, a name or the declaration is never taken for another.
func TestPool(t *testing.T) {
	var p Pool
	if p.Share(Bundle{}) != (Bundle{}) || len(p.known) != 0 {
		t.Error("the zero Bundle is kept")
	}
	made := func(path, data, declaration string) Bundle {
		b, err := New([]File{{path, []byte(data)}}, []byte(declaration), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Share(b)
	}
	first := made("a", "x", "d")
	if again := made("a", "x", "d"); again != first {
		t.Error("equal bundles are two")
	}
	others := []Bundle{made("a", "y", "d"), made("b", "x", "d"), made("a", "x", "e")}
	if slices.Contains(others, first) || len(p.known) != 4 {
		t.Errorf("what differs is one: %d are known", len(p.known))
	}
	for i, b := range others {
		if text, _, _ := b.Text(b.Paths()[0]); text+string(b.Declaration()) != []string{"yd", "xd", "xe"}[i] {
			t.Errorf("bundle %d has other bytes: %q", i, text)
		}
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(others)
	first, others = Bundle{}, nil
	for n := 4; n > 0; { // the collector says when, not whether
		runtime.GC()
		p.mu.Lock()
		n = len(p.known)
		p.mu.Unlock()
	}
}
