package image

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// A kind is what an entry is, as the manifest writes it.
type kind byte

const (
	folder kind = 'd'
	file   kind = 'f'
	link   kind = 'l'
)

// A node is an entry of an image.
type node struct {
	kind   kind
	exec   bool          // a file that can be executed
	target string        // the text of a link
	size   int64         // of a file
	time   int64         // of a file's last change, in seconds since 1970
	sum    bundle.Digest // of a file
}

// A tree is what an image holds, by path: relative, with slashes, the root left out.
type tree struct {
	limits  Limits
	nodes   map[string]node
	entries int   // those that were left out too
	bytes   int64 // of the files
	text    int   // bytes of the paths and the texts of links
	layers  *layers
}

// put puts an entry at the path.
func (t *tree) put(p string, n node) {
	t.nodes[p] = n
	t.layers.note(p)
}

func newTree(l Limits) *tree { return &tree{limits: l.orDefaults(), nodes: map[string]node{}} }

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrContent}, args...)...)
}

// maxElement is how many bytes a file system takes for one element of a path.
const maxElement = 255

// clean returns the name of an entry as a path of the tree: "" for the root. A
// name may begin with "/" or "./", as archives write it.
func (l Limits) clean(name string) (string, error) {
	if len(name) > l.PathBytes+len("./") {
		return "", bad("a path of %d bytes, at most %d: %.60q…", len(name), l.PathBytes, name)
	}
	if strings.ContainsRune(name, 0) {
		return "", bad("the path %q has a NUL", name)
	}
	elements := strings.Split(name, "/")
	for _, e := range elements {
		if e == ".." {
			return "", bad("the path %q leaves the root", name)
		}
		if len(e) > maxElement {
			return "", bad("the path %.60q… has an element of %d bytes, at most %d", name, len(e), maxElement)
		}
	}
	p := strings.TrimPrefix(path.Clean("/"+name), "/")
	if n := strings.Count(p, "/") + 1; n > l.Depth {
		return "", bad("the path %.60q has %d elements, at most %d", p, n, l.Depth)
	}
	return p, nil
}

// count counts an entry in.
func (t *tree) count(bytes int64) error {
	t.entries++
	if t.entries > t.limits.Entries {
		return bad("more than %d entries", t.limits.Entries)
	}
	if bytes < 0 || bytes > t.limits.Bytes-t.bytes {
		return bad("more than %d bytes", t.limits.Bytes)
	}
	t.bytes += bytes
	return nil
}

// name counts the path of an entry in, and the text of a link. Each of them alone
// is bounded, and all of them are kept in memory.
func (t *tree) name(p, target string) error {
	n := len(p) + len(target)
	if n > t.limits.TextBytes-t.text {
		return bad("paths and texts of links of more than %d bytes together", t.limits.TextBytes)
	}
	t.text += n
	return nil
}

// room holds that an entry may stand at p, and returns the folders above it that
// are not there yet, the outermost first.
func (t *tree) room(p string) (missing []string, err error) {
	if p == "" {
		return nil, bad("the root can only be a folder")
	}
	if _, ok := t.nodes[p]; ok {
		return nil, bad("the path %q comes twice", p)
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		n, ok := t.nodes[dir]
		if ok && n.kind != folder {
			return nil, bad("the path %q lies below %q, which is no folder", p, dir)
		}
		if ok {
			break
		}
		missing = append(missing, dir)
	}
	slices.Reverse(missing)
	return missing, nil
}

// latest is the last time that is kept: in the year 2242. No file system that
// counts in whole seconds is asked for more.
const latest = 1 << 33

// seconds returns a time as it is kept.
func seconds(t time.Time) int64 { return min(max(t.Unix(), 0), latest) }

// manifestDomain begins every manifest, so that no other digest can be taken for
// one of an image.
const manifestDomain = "tracon/image/1"

// manifest returns the bytes that the digest is of.
func (t *tree) manifest() []byte {
	size := len(manifestDomain)
	for p, n := range t.nodes {
		size += 8 + len(p) + 2 + 8 + len(n.target) + 16 + len(n.sum)
	}
	b := append(make([]byte, 0, size), manifestDomain...) // it can be large: it is not to grow by copies
	for _, p := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[p]
		b = appendText(b, p)
		b = append(b, byte(n.kind), map[bool]byte{true: 1}[n.exec])
		b = appendText(b, n.target)
		b = binary.BigEndian.AppendUint64(b, uint64(n.size))
		b = binary.BigEndian.AppendUint64(b, uint64(n.time))
		b = append(b, n.sum[:]...)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}

// cutText takes off the rest what appendText appended.
func cutText(rest *string) (s string, ok bool) {
	if len(*rest) < 8 {
		return "", false
	}
	n := binary.BigEndian.Uint64([]byte((*rest)[:8]))
	if *rest = (*rest)[8:]; n > uint64(len(*rest)) {
		return "", false
	}
	s, *rest = (*rest)[:n], (*rest)[n:]
	return s, true
}

// parseManifest reads what manifest writes, and nothing else.
func parseManifest(b []byte) (*tree, error) {
	wrong := func(what string) (*tree, error) { return nil, fmt.Errorf("%w: its manifest: %s", ErrDamaged, what) }
	rest, ok := strings.CutPrefix(string(b), manifestDomain)
	if !ok {
		return wrong("another beginning")
	}
	text := func() (string, bool) { return cutText(&rest) }
	t := &tree{nodes: map[string]node{}}
	for before := ""; rest != ""; {
		p, ok := text()
		if !ok || p <= before || len(rest) < 2 {
			return wrong("a path")
		}
		before = p
		n := node{kind: kind(rest[0]), exec: rest[1] == 1}
		if rest[1] > 1 {
			return wrong("a mode")
		}
		rest = rest[2:]
		if n.target, ok = text(); !ok || len(rest) < 16+len(n.sum) {
			return wrong("the text of a link")
		}
		n.size = int64(binary.BigEndian.Uint64([]byte(rest[:8])))
		n.time = int64(binary.BigEndian.Uint64([]byte(rest[8:16])))
		copy(n.sum[:], rest[16:])
		rest = rest[16+len(n.sum):]
		switch {
		case n.size < 0 || n.time != seconds(time.Unix(n.time, 0)):
			return wrong("a size or a time")
		case n.kind == file && n.target == "":
		case n.kind == folder && n == node{kind: folder}:
		case n.kind == link && n == node{kind: link, target: n.target}:
		default:
			return wrong("an entry")
		}
		t.nodes[p] = n
		t.entries++
		t.bytes += n.size
	}
	return t, nil
}

// differs names the first path at which two trees are not the same.
func (t *tree) differs(from *tree) (string, bool) {
	for _, p := range slices.Sorted(maps.Keys(t.nodes)) {
		if n, ok := from.nodes[p]; !ok || n != t.nodes[p] {
			return p, true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(from.nodes)) {
		if _, ok := t.nodes[p]; !ok {
			return p, true
		}
	}
	return "", false
}
