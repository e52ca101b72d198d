//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// layersOf are layers as a source opens them.
func layersOf(t testing.TB, list ...[]item) (layers []Layer) {
	t.Helper()
	for _, items := range list {
		data := archive(t, items...)
		layers = append(layers, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	}
	return layers
}

func dir(name string) item          { return item{name: name, kind: tar.TypeDir} }
func sym(name, target string) item  { return item{name: name, kind: tar.TypeSymlink, target: target} }
func hard(name, target string) item { return item{name: name, kind: tar.TypeLink, target: target} }
func text(name, content string) item {
	return item{name: name, content: content}
}

// holds says what an image holds: a path, and what is there.
func holds(t *testing.T, i *Image) map[string]string {
	t.Helper()
	tree, err := i.told()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for p, n := range tree.nodes {
		switch n.kind {
		case folder:
			got[p] = "/"
		case link:
			got[p] = "> " + n.target
		case file:
			b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/%s", i.root.Fd(), p))
			if err != nil {
				t.Fatal(err)
			}
			got[p] = string(b)
		}
	}
	return got
}

// TM-23: layers lie over each other as the images' specification says, and however
// they are divided the same tree has the same digest.
func TestLayers(t *testing.T) {
	tests := []struct {
		name   string
		layers [][]item
		want   map[string]string
	}{
		{"one", [][]item{{text("a/b", "1"), sym("c", "a")}}, map[string]string{"a": "/", "a/b": "1", "c": "> a"}},
		{"a file over a file", [][]item{{text("a", "1")}, {text("a", "2")}}, map[string]string{"a": "2"}},
		{"a file over a link", [][]item{{sym("a", "/etc/passwd"), text("x", "")}, {text("a", "2")}}, map[string]string{"a": "2", "x": ""}},
		{"a file over a folder", [][]item{{text("a/b/c", "1"), text("x", "")}, {text("a", "2")}}, map[string]string{"a": "2", "x": ""}},
		{"a folder over a file", [][]item{{text("a", "1")}, {dir("a"), text("a/b", "2")}}, map[string]string{"a": "/", "a/b": "2"}},
		{"a folder over a link", [][]item{{sym("a", "b"), text("b/x", "1")}, {dir("a"), text("a/y", "2")}}, map[string]string{"a": "/", "a/y": "2", "b": "/", "b/x": "1"}},
		{"a folder again", [][]item{{text("a/b", "1")}, {dir("a"), text("a/c", "2")}}, map[string]string{"a": "/", "a/b": "1", "a/c": "2"}},
		{"a link over a folder", [][]item{{text("a/b", "1"), text("c/d", "2")}, {sym("a", "c")}}, map[string]string{"a": "> c", "c": "/", "c/d": "2"}},
		{"hidden", [][]item{{text("a/b", "1"), text("a/c", "2")}, {text("a/.wh.b", "")}}, map[string]string{"a": "/", "a/c": "2"}},
		{"hidden with all below it", [][]item{{text("a/b/c", "1"), sym("a/l", "b"), text("x", "")}, {text(".wh.a", "")}}, map[string]string{"x": ""}},
		{"hidden that was never there", [][]item{{text("a", "1")}, {text(".wh.b", ""), text("c/.wh.d", "")}}, map[string]string{"a": "1"}},
		{"hidden below, there here", [][]item{{text("a/b", "1"), text("a/c", "1")}, {text("a/b", "2"), text(".wh.a", "")}}, map[string]string{"a": "/", "a/b": "2"}},
		{"the same the other way round", [][]item{{text("a/b", "1"), text("a/c", "1")}, {text(".wh.a", ""), text("a/b", "2")}}, map[string]string{"a": "/", "a/b": "2"}},
		{"hidden and there again", [][]item{{text("a", "1"), text("x", "")}, {text(".wh.a", "")}, {text("a", "3")}}, map[string]string{"a": "3", "x": ""}},
		{"all of a folder", [][]item{{text("a/b", "1"), text("a/c/d", "1"), text("x", "")}, {text("a/.wh..wh..opq", ""), text("a/e", "2")}}, map[string]string{"a": "/", "a/e": "2", "x": ""}},
		{"all of a folder, said last", [][]item{{text("a/b", "1")}, {dir("a"), text("a/b", "2"), text("a/.wh..wh..opq", "")}}, map[string]string{"a": "/", "a/b": "2"}},
		{"all of the root", [][]item{{text("a/b", "1"), sym("l", "a")}, {text(".wh..wh..opq", ""), text("c", "2")}}, map[string]string{"c": "2"}},
		{"a device in a file's place", [][]item{{text("a", "1"), text("x", "")}, {{name: "a", kind: tar.TypeChar}}}, map[string]string{"x": ""}},
		{"through a link of the layer below", [][]item{{dir("usr/bin"), sym("bin", "usr/bin")}, {text("bin/sh", "2")}}, map[string]string{"usr": "/", "usr/bin": "/", "usr/bin/sh": "2", "bin": "> usr/bin"}},
		{"through links of several", [][]item{{dir("a/b"), sym("l", "/a/b")}, {sym("a/b/m", "../../a")}, {text("l/m/c", "3")}}, map[string]string{"a": "/", "a/b": "/", "a/b/m": "> ../../a", "a/c": "3", "l": "> /a/b"}},
		{"through a link that leads out", [][]item{{sym("l", "../../../../etc"), text("x", "")}, {text("l/f", "2")}}, map[string]string{"l": "> ../../../../etc", "x": "", "etc": "/", "etc/f": "2"}},
		{"hidden through a link", [][]item{{text("usr/bin/sh", "1"), sym("bin", "usr/bin")}, {text("bin/.wh.sh", "")}}, map[string]string{"usr": "/", "usr/bin": "/", "bin": "> usr/bin"}},
		{"a hidden link, not what it leads to", [][]item{{text("a", "1"), sym("l", "a")}, {text(".wh.l", "")}}, map[string]string{"a": "1"}},
		{"a hard link into the layer below", [][]item{{text("a", "1")}, {hard("b", "a")}}, map[string]string{"a": "1", "b": "1"}},
		{"a hard link to what is replaced later", [][]item{{text("a", "1"), hard("b", "a")}, {text("a", "2")}}, map[string]string{"a": "2", "b": "1"}},
		{"a hard link in a file's place", [][]item{{text("a", "1"), text("b", "1")}, {text("a", "2"), hard("b", "a")}}, map[string]string{"a": "2", "b": "2"}},
		{"a hard link to a link", [][]item{{sym("a", "/etc/shadow")}, {hard("b", "a")}}, map[string]string{"a": "> /etc/shadow", "b": "> /etc/shadow"}},
		{"a hard link through a link", [][]item{{text("a/x", "1"), sym("l", "a")}, {hard("b", "l/x")}}, map[string]string{"a": "/", "a/x": "1", "l": "> a", "b": "1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := newStore(t)
			made, err := s.ImportLayers(t.Context(), layersOf(t, tc.layers...), nil, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer made.Image.Close()
			if got := holds(t, made.Image); !cmp.Equal(got, tc.want) {
				t.Errorf("it holds\n%v\nwant\n%v", got, tc.want)
			}
			if err := made.Image.Verify(t.Context(), nil); err != nil {
				t.Error(err)
			}
			var flat []item
			for _, p := range slices.Sorted(maps.Keys(tc.want)) {
				switch is := tc.want[p]; {
				case is == "/":
					flat = append(flat, dir(p))
				case strings.HasPrefix(is, "> "):
					flat = append(flat, sym(p, is[2:]))
				default:
					flat = append(flat, text(p, is))
				}
			}
			if again := take(t, s, archive(t, flat...)); again.Digest != made.Digest {
				t.Errorf("its digest is %s, that of the same tree in one archive %s", made.Digest, again.Digest)
			}
		})
	}
}

// TM-23: what no reader would read as another does is refused whole; no layer leaves
// the root, whatever those below it have prepared.
func TestLayersRefused(t *testing.T) {
	chain := []item{dir("z")}
	for n := range 60 {
		chain = append(chain, sym(fmt.Sprintf("l%d", n), fmt.Sprintf("l%d", n+1)))
	}
	wide := strings.Repeat("./", 400) + "w"
	tests := []struct {
		name   string
		layers [][]item
		says   string
	}{
		{"above the root", [][]item{{text("../x", "")}}, "leaves the root"},
		{"above the root in the second", [][]item{{text("a", "")}, {text("a/../../x", "")}}, "leaves the root"},
		{"through a link of the same layer", [][]item{{sym("a", "/etc"), text("a/x", "")}}, "of the same layer"},
		{"through a link of the same layer behind one below", [][]item{{sym("l", "m"), text("x", "")}, {sym("m", "/etc"), text("l/x", "")}}, "of the same layer"},
		{"through too many links", [][]item{chain, {text("l0/x", "")}}, "too many links"},
		{"through a loop", [][]item{{sym("l", "l"), text("x", "")}, {text("l/x", "")}}, "too many links"},
		{"through links with long texts", [][]item{{sym("w", wide), sym("v", strings.Repeat("w/", 300)), text("x", "")}, {text("v/x", "")}}, "too many links"},
		{"to a place that is too deep", [][]item{{sym("l", strings.Repeat("a/", 63)+"a"), text("x", "")}, {text("l/b/c", "")}}, "elements"},
		{"below a file of the layer below", [][]item{{text("a", "1")}, {text("a/b", "2")}}, "no folder"},
		{"a file twice in a layer", [][]item{{text("a", "1")}, {text("b", "1"), text("b", "2")}}, "twice"},
		{"a file and a folder in a layer", [][]item{{text("a", "1")}, {text("b/c", "1"), text("b", "2")}}, "twice"},
		{"a device and a file in a layer", [][]item{{text("a", "1")}, {text("b", "1"), {name: "b", kind: tar.TypeChar}}}, "twice"},
		{"one file twice, through a link", [][]item{{dir("a"), sym("l", "a")}, {text("a/x", "1"), text("l/x", "2")}}, "twice"},
		{"hidden twice", [][]item{{text("a", "1")}, {text(".wh.a", ""), text(".wh.a", "")}}, "twice"},
		{"hiding with a content", [][]item{{text("a", "1")}, {text(".wh.a", "x")}}, "empty"},
		{"hiding by a folder", [][]item{{text("a", "1")}, {dir(".wh.a")}}, "empty"},
		{"hiding by a link", [][]item{{text("a", "1")}, {sym(".wh.a", "b")}}, "empty"},
		{"below what hides", [][]item{{text("a", "1")}, {text(".wh.a/b", "")}}, "hides"},
		{"hiding nothing", [][]item{{text("a", "1")}, {text(".wh.", "")}}, "hides nothing"},
		{"hiding the folder itself", [][]item{{text("a/b", "1")}, {text("a/.wh..", "")}}, "hides nothing"},
		{"hiding the folder above", [][]item{{text("a/b", "1")}, {text("a/.wh...", "")}}, "hides nothing"},
		{"hiding what hides", [][]item{{text("a", "1")}, {text(".wh..wh.a", "")}}, "hides nothing"},
		{"what an old union file system kept", [][]item{{text("a", "1")}, {text(".wh..wh.plnk", "")}}, "hides nothing"},
		{"a hard link to what hides", [][]item{{text("a", "1")}, {text(".wh.a", ""), hard("b", ".wh.a")}}, "hides something"},
		{"a hard link to what is hidden", [][]item{{text("a", "1")}, {text(".wh.a", ""), hard("b", "a")}}, "no file"},
		{"a hard link to a folder of the layer below", [][]item{{dir("a"), text("x", "")}, {hard("b", "a")}}, "no file"},
		{"a hard link out, through a link", [][]item{{sym("l", "/etc"), text("x", "")}, {hard("b", "l/shadow")}}, "no file"},
		{"a hard link in place of what it leads to", [][]item{{text("a/b", "1")}, {hard("a", "a/b")}}, "no file"},
		{"the root as a link", [][]item{{text("a", "1")}, {sym("./", "/")}}, "root"},
		{"nothing", [][]item{{}}, "nothing in it"},
		{"no layer", nil, "nothing in it"},
		{"all hidden", [][]item{{text("a", "1")}, {text(".wh.a", "")}}, "nothing in it"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s, at := newStore(t)
			made, err := s.ImportLayers(t.Context(), layersOf(t, tc.layers...), nil, Limits{})
			if err == nil {
				made.Image.Close()
			}
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			if left, _ := os.ReadDir(at); len(left) > 0 {
				t.Errorf("case 40: there is still %v", left)
			}
		})
	}
}

// The limits are for all layers together: what one replaces counts as well.
func TestLayersLimits(t *testing.T) {
	layers := [][]item{{text("a", "12345")}, {text("a", "678")}, {text(".wh.b", "")}}
	for _, tc := range []struct {
		name   string
		limits Limits
		ok     bool
	}{
		{"at their value", Limits{Entries: 3, Bytes: 8, TextBytes: 7}, true},
		{"an entry less", Limits{Entries: 2}, false},
		{"a byte less", Limits{Bytes: 7}, false},
		{"a byte of names less", Limits{TextBytes: 6}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := newStore(t)
			made, err := s.ImportLayers(t.Context(), layersOf(t, layers...), nil, tc.limits)
			if err == nil {
				made.Image.Close()
			}
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrContent) {
				t.Errorf("err = %v, want none: %v", err, tc.ok)
			}
		})
	}
	// Zeros behind the end mark of each layer come to no more than one archive's.
	padded := func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(append(archive(t, dir("a")), make([]byte, 600<<10)...))), nil
	}
	s, _ := newStore(t)
	if _, err := s.ImportLayers(t.Context(), []Layer{padded, padded}, nil, Limits{Bytes: 1, Entries: 3}); !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), "longer") {
		t.Errorf("two padded layers: %v, want ErrContent", err)
	}
}

// TM-23: a file with many names counts for each of them, however it comes: who reads the
// image, and who is sent it, has all of them.
func TestNamesOfOneFile(t *testing.T) {
	limits := Limits{Bytes: 4096}
	one := text("f", strings.Repeat("x", 1024))
	names := []item{hard("1", "f"), hard("2", "f"), hard("3", "f")}
	for _, tc := range []struct {
		name  string
		names int
		ok    bool
	}{{"at the limit", 3, true}, {"above it", 4, false}} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := newStore(t)
			list := append([]item{one}, append(names, hard("4", "f"))[:tc.names]...)
			from := t.TempDir()
			if err := os.WriteFile(from+"/f", []byte(one.content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, i := range list[1:] {
				if err := os.Link(from+"/f", from+"/"+i.name); err != nil {
					t.Fatal(err)
				}
			}
			for how, load := range map[string]func() (*Import, error){
				"an archive": func() (*Import, error) { return s.ImportTar(t.Context(), bytes.NewReader(archive(t, list...)), limits) },
				"a folder":   func() (*Import, error) { return s.ImportFolder(t.Context(), from, limits) },
				"layers": func() (*Import, error) {
					return s.ImportLayers(t.Context(), layersOf(t, list[:1], list[1:]), nil, limits)
				},
			} {
				made, err := load()
				if err == nil {
					made.Image.Close()
					if made.Bytes != limits.Bytes {
						t.Errorf("%s: it has %d bytes, want %d", how, made.Bytes, limits.Bytes)
					}
				}
				if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrContent) {
					t.Errorf("%s: err = %v, want none: %v", how, err, tc.ok)
				}
			}
		})
	}
}

// TM-23: what links lead through, and what is looked at to hide something, is bounded for
// the image, not for each entry: many entries are not many times as much work.
func TestLayersWork(t *testing.T) {
	const hops, entries = 9, 100
	winding := []item{dir("x")}
	for n := range hops {
		winding = append(winding, sym(fmt.Sprintf("l%d", n), strings.Repeat("x/../", 200)+fmt.Sprintf("l%d", n+1)))
	}
	winding = append(winding, dir(fmt.Sprintf("l%d", hops)))
	var through []item
	for n := range entries {
		through = append(through, text(fmt.Sprintf("l0/%d", n), ""))
	}
	// One folder within the other, each of which is hidden, around files of the same layer.
	const deep, files = 60, 200
	var hiding []item
	bottom := strings.Repeat("d/", deep)
	for n := range files {
		hiding = append(hiding, text(fmt.Sprintf("%s%d", bottom, n), ""))
	}
	for n := range deep {
		hiding = append(hiding, text(strings.Repeat("d/", n)+hidesAll, ""), text(strings.Repeat("d/", n)+hides+"d", ""))
	}
	for _, tc := range []struct {
		name   string
		layers [][]item
		limits Limits
		ok     bool
	}{
		{"one entry through winding links", [][]item{winding, through[:1]}, Limits{Entries: entries}, true},
		{"many entries through winding links", [][]item{winding, through}, Limits{Entries: 2 * entries}, false},
		{"hiding what is there once", [][]item{{text("a", "1")}, append(hiding[:files:files], hiding[files+2*deep-1])}, Limits{Entries: 2 * files}, true},
		{"hiding what is there again and again", [][]item{{text("a", "1")}, hiding}, Limits{Entries: 2 * files}, false},
		{"a path that is too deep on its way", [][]item{{sym("l", strings.Repeat("x/", 65)+strings.Repeat("../", 65)), dir("x")}, {text("l/f", "")}}, Limits{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, at := newStore(t)
			made, err := s.ImportLayers(t.Context(), layersOf(t, tc.layers...), nil, tc.limits)
			if err == nil {
				made.Image.Close()
			}
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrContent) {
				t.Errorf("err = %v, want none: %v", err, tc.ok)
			}
			if left, _ := os.ReadDir(at); err != nil && len(left) > 0 {
				t.Errorf("case 40: there is still %v", left)
			}
		})
	}
}

// A layer that cannot be opened or breaks off leaves nothing, and says what happened.
func TestLayerBreaks(t *testing.T) {
	broken := errors.New("the disk is gone")
	whole := layersOf(t, small)[0]
	for name, second := range map[string]Layer{
		"at its beginning": func() (io.ReadCloser, error) { return nil, broken },
		"in the middle": func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(archive(t, text("a", "1"))[:600]), failing{broken})), nil
		},
		"at its end": func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(archive(t, text("a", "1"))), failing{broken})), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, at := newStore(t)
			if _, err := s.ImportLayers(t.Context(), []Layer{whole, second}, nil, Limits{}); !errors.Is(err, broken) {
				t.Errorf("err = %v, want what broke", err)
			}
			if left, _ := os.ReadDir(at); len(left) > 0 {
				t.Errorf("case 40: there is still %v", left)
			}
		})
	}
	s, _ := newStore(t)
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.ImportLayers(ctx, []Layer{whole}, nil, Limits{}); !errors.Is(err, why) {
		t.Errorf("err = %v, want the cause", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TM-23: whatever the layers are, nothing is written but below the root, and what is
// accepted verifies.
func FuzzLayers(f *testing.F) {
	f.Add(archive(f, small...), archive(f, text("bin/x", "1"), text("etc/.wh.escape", "")))
	f.Add(archive(f, sym("l", "../../x"), dir("d")), archive(f, text("l/f", "1"), hard("d/h", "l/f")))
	f.Add(archive(f, text("a/b", "1")), archive(f, text("a/.wh..wh..opq", ""), sym("a/c", "/")))
	f.Add(archive(f, text("a", "1")), archive(f, hard("b", "a"), text(".wh.a", "")))
	outside := f.TempDir()
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		at, err := os.MkdirTemp(outside, "")
		if err != nil {
			t.Fatal(err)
		}
		store, err := os.OpenRoot(at)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		defer removeAll(store, ".")
		if err := store.Mkdir(rootName, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := store.OpenRoot(rootName)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := newUnpacker(root, Limits{Entries: 100, Bytes: 1 << 20})
		var layers []Layer
		for _, data := range [][]byte{lower, upper} {
			layers = append(layers, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		}
		err = u.readLayers(t.Context(), layers)
		if beside, lerr := list(store, "."); lerr != nil || len(beside) != 1 {
			t.Errorf("beside the root there is %q, %v", beside, lerr)
		}
		if err != nil {
			return
		}
		if err := u.finish(); err != nil {
			t.Fatal(err)
		}
		got := &tree{nodes: map[string]node{}}
		if err := got.look(t.Context(), root, ".", nil); err != nil {
			t.Fatal(err)
		}
		if p, differs := u.tree.differs(got); differs {
			t.Errorf("what was accepted is not what is there: %q", p)
		}
		for p := range got.nodes {
			if strings.HasPrefix(path.Base(p), hides) {
				t.Errorf("%q was kept", p)
			}
		}
	})
}

// Attributes of all kinds, long names and sparse files come as from one archive.
func TestLayersKeepWhatArchivesKeep(t *testing.T) {
	long := strings.Repeat("directory-of-a-long-name/", 12) + "file"
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: long, Typeflag: tar.TypeReg, Mode: 0o6755, Format: tar.FormatGNU},
		{Name: "p/" + long, Typeflag: tar.TypeReg, Mode: 0o644, Format: tar.FormatPAX, Uid: 7, ModTime: time.Unix(1_700_000_000, 5), PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "\x01", "SCHILY.xattr.user.x": "y"}},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ := newStore(t)
	made, err := s.ImportLayers(t.Context(), []Layer{func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }}, nil, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Image.Close()
	if again := take(t, s, b.Bytes()); again.Digest != made.Digest {
		t.Errorf("as a layer %s, as an archive %s", made.Digest, again.Digest)
	}
	info, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d/%s", made.Image.Root().Fd(), long))
	if err != nil || info.Mode() != 0o555 {
		t.Errorf("%v, %v; want it to be read and executed alone", info.Mode(), err)
	}
}
