package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracon-go/tracon/bundle"
)

func bundleOf(t *testing.T, files ...bundle.File) bundle.Bundle {
	t.Helper()
	b, err := bundle.New(files, nil, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// B10: closures count with their names and with what a file takes besides its bytes:
// two thousand empty files are not nothing.
func TestClosuresAreBounded(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	c := newClosures(most)
	for i := range 5 {
		var files []bundle.File
		for j := range 1000 {
			files = append(files, bundle.File{Path: fmt.Sprintf("%s/%s/%d-%d", strings.Repeat("d", 200), strings.Repeat("e", 200), i, j)})
		}
		c.add("acme", bundleOf(t, files...))
	}
	if n := c.order.Len(); n != 2 { // each takes about 1.4 MB, and half of the room is the tenant's
		t.Errorf("B10: %d closures are kept, want 2", n)
	}
	if c.size > most/2 || c.size < most/4 {
		t.Errorf("B10: they count %d bytes, want more than a quarter of %d and half at most", c.size, most)
	}
}

// B10, T09: a tenant has half of the room at most, keeps it whatever others bring, and
// is given no closure of another.
func TestClosuresOfTenants(t *testing.T) {
	t.Parallel()
	c := newClosures(16 << 10)
	file := func(s string) bundle.Bundle {
		return bundleOf(t, bundle.File{Path: "main.py", Data: []byte(s + strings.Repeat(".", 2<<10))})
	}
	mine := file("mine")
	c.add("acme", mine)
	if _, ok := c.get("beta", mine.Digest().String()); ok {
		t.Error("T09: beta has acme's closure")
	}
	for i := range 20 {
		c.add("beta", file(fmt.Sprint(i)))
	}
	if got, ok := c.get("acme", strings.ToUpper(mine.Digest().String())); !ok || got.Digest() != mine.Digest() {
		t.Error("B10: acme's closure went for those of beta")
	}
	for i := range 20 {
		c.add(fmt.Sprint("tenant ", i), file("theirs"))
	}
	if c.size > c.most || len(c.by) != c.order.Len() {
		t.Errorf("B10: %d bytes of %d are kept", c.size, c.most)
	}
	var sum int64
	for _, n := range c.tenants {
		sum += n
	}
	if sum != c.size {
		t.Errorf("the tenants have %d bytes, all of it is %d", sum, c.size)
	}
	whole := bundleOf(t, bundle.File{Path: "main.py", Data: make([]byte, 9<<10)})
	if c.add("acme", whole); c.by[owned{"acme", whole.Digest().String()}] != nil {
		t.Error("B10: a closure of more than half of the room is kept")
	}
}
