//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// An item is an entry of an archive.
type item struct {
	name, content, target string
	kind                  byte // a file where it is zero
	mode                  int64
}

func archive(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Typeflag: i.kind, Linkname: i.target, Mode: i.mode, Size: int64(len(i.content)), ModTime: time.Unix(1_700_000_000, 0)}
		if i.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, i.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// small is a root file system with one of each kind.
var small = []item{
	{name: "./", kind: tar.TypeDir},
	{name: "./usr/bin/run", content: "#!run\n", mode: 0o4755},
	{name: "./usr/share/text", content: "text", mode: 0o600},
	{name: "bin", kind: tar.TypeSymlink, target: "usr/bin"},
	{name: "/usr/bin/again", kind: tar.TypeLink, target: "./usr/bin/run"},
	{name: "etc/escape", kind: tar.TypeSymlink, target: "../../../../etc/passwd"},
	{name: "etc/absolute", kind: tar.TypeSymlink, target: "/usr/share/text"},
	{name: "empty/", kind: tar.TypeDir, mode: 0o700},
}

// smallDigest is the digest of small, computed by another program from the package
// comment. It never changes.
const smallDigest = "sha256:7ffe07b6a54dd89d881dbc87fc142de2f29c629e749b98fc21fce1bfc1d49177"

func newStore(t testing.TB) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "images")
	t.Cleanup(func() {
		s := New(dir)
		if _, err := s.Prune(func(bundle.Digest) bool { return false }); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			t.Errorf("case 40: there is still %v", left)
		}
	})
	return New(dir), dir
}

func take(t testing.TB, s *Store, data []byte) *Import {
	t.Helper()
	made, err := s.ImportTar(t.Context(), bytes.NewReader(data), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Image.Close() })
	return made
}

// The digest of a known root file system is known, whichever way it comes.
func TestDigest(t *testing.T) {
	s, dir := newStore(t)
	plain := archive(t, small...)
	made := take(t, s, plain)
	if got := made.Digest.String(); got != smallDigest {
		t.Errorf("digest %s, want %s", got, smallDigest)
	}
	if want := (Info{Digest: made.Digest, Tree: made.Digest, Files: 3, Folders: 5, Links: 3, Bytes: 16}); !cmp.Equal(made.Info, want) {
		t.Errorf("info %+v, want %+v", made.Info, want)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(plain)
	w.Close()
	if again := take(t, s, zipped.Bytes()); again.Digest != made.Digest {
		t.Errorf("compressed it has the digest %s", again.Digest)
	}
	folder, err := s.ImportFolder(t.Context(), filepath.Join(dir, made.Digest.Hex(), rootName), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	folder.Image.Close()
	if folder.Digest != made.Digest {
		t.Errorf("as a folder it has the digest %s", folder.Digest)
	}
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Errorf("there are %v, %v; want one image", list, err)
	}
	if err := s.Verify(t.Context(), made.Digest); err != nil {
		t.Error(err)
	}
	if info, err := s.Info(made.Digest); err != nil || !cmp.Equal(info, made.Info) {
		t.Errorf("info %+v, %v", info, err)
	}
}

// What is unpacked has no rights but to be read and executed, hard links are one
// file, and links keep their text.
func TestUnpacked(t *testing.T) {
	s, dir := newStore(t)
	root := filepath.Join(dir, take(t, s, archive(t, small...)).Digest.Hex(), rootName)
	for name, want := range map[string]fs.FileMode{
		"": fs.ModeDir | 0o555, "usr/bin/run": 0o555, "usr/share/text": 0o444, "empty": fs.ModeDir | 0o555, "usr": fs.ModeDir | 0o555,
	} {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	a, _ := os.Stat(filepath.Join(root, "usr/bin/run"))
	b, _ := os.Stat(filepath.Join(root, "usr/bin/again"))
	if !os.SameFile(a, b) {
		t.Error("a hard link is another file")
	}
	if text, err := os.Readlink(filepath.Join(root, "etc/escape")); err != nil || text != "../../../../etc/passwd" {
		t.Errorf("the link has the text %q, %v", text, err)
	}
}

// Links lead where they would in a box, and never out of the image.
func TestOpenInside(t *testing.T) {
	s, _ := newStore(t)
	made := take(t, s, archive(t, append(small, item{name: "etc/passwd", content: "inside"}, item{name: "etc/loop", kind: tar.TypeSymlink, target: "loop"},
		item{name: "proc", kind: tar.TypeSymlink, target: "/proc/self/root"})...))
	for _, tc := range []struct {
		name, want string
		fails      bool
	}{
		{"/bin/run", "#!run\n", false},
		{"/etc/absolute", "text", false},
		{"/etc/escape", "inside", false},
		{"/../../../etc/passwd", "inside", false},
		{"/etc", "", true},
		{"/etc/loop", "", true},
		{"/proc/etc/passwd", "", true},
		{"/nowhere", "", true},
	} {
		f, err := made.Image.Open(tc.name)
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v, want an error: %v", tc.name, err, tc.fails)
		}
		if err != nil {
			continue
		}
		got, _ := io.ReadAll(f)
		f.Close()
		if string(got) != tc.want {
			t.Errorf("%s has %q, want %q", tc.name, got, tc.want)
		}
	}
}

// No entry leaves the root, no link is followed, and what two readers could read
// as two file systems is refused whole: nothing is left.
func TestRefused(t *testing.T) {
	d := func(name string) item { return item{name: name, kind: tar.TypeDir} }
	l := func(name, target string) item { return item{name: name, kind: tar.TypeSymlink, target: target} }
	h := func(name, target string) item { return item{name: name, kind: tar.TypeLink, target: target} }
	tests := []struct {
		name  string
		items []item
		says  string
	}{
		{"above the root", []item{{name: "../x"}}, "leaves the root"},
		{"above the root in the middle", []item{{name: "a/../../x"}}, "leaves the root"},
		{"back into the root", []item{{name: "a/../x"}}, "leaves the root"},
		{"through a link to the host", []item{l("a", "/etc"), {name: "a/x"}}, "no folder"},
		{"through a link inside", []item{d("b"), l("a", "b"), {name: "a/x"}}, "no folder"},
		{"below a file", []item{{name: "a"}, {name: "a/x"}}, "no folder"},
		{"a folder in place of a link", []item{l("a", "b"), d("a")}, "twice"},
		{"a file in place of a link", []item{l("a", "/etc/passwd"), {name: "a"}}, "twice"},
		{"a file twice", []item{{name: "a"}, {name: "./a"}}, "twice"},
		{"a file in place of a folder", []item{d("a"), {name: "a"}}, "twice"},
		{"a link in place of the root", []item{l("./", "/")}, "root"},
		{"a hard link to nothing", []item{h("a", "b")}, "no file"},
		{"a hard link to what comes later", []item{h("a", "b"), {name: "b"}}, "no file"},
		{"a hard link to a folder", []item{d("b"), h("a", "b")}, "no file"},
		{"a hard link to a link", []item{l("b", "/etc/shadow"), h("a", "b")}, "no file"},
		{"a hard link out", []item{h("a", "../../etc/shadow")}, "leaves the root"},
		{"a hard link through a link", []item{l("b", "/etc"), h("a", "b/shadow")}, "no file"},
		{"a link to nowhere", []item{l("a", "")}, "leads to"},
		{"a long element", []item{{name: strings.Repeat("a", 256)}}, "element"},
		{"a long path", []item{{name: strings.Repeat("a/", 600) + "x"}}, "bytes"},
		{"a deep path", []item{{name: strings.Repeat("a/", 65) + "x"}}, "elements"},
		{"a long link", []item{l("a", strings.Repeat("b", 1025))}, "bytes"},
		{"nothing", nil, "nothing in it"},
		{"an image in layers", []item{{name: "oci-layout"}}, "layers"},
		{"another image in layers", []item{{name: "manifest.json"}, {name: "x/layer.tar"}}, "layers"},
	}
	s, dir := newStore(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			items := append([]item{{name: "first/file", content: "x"}}, tc.items...)
			if strings.HasPrefix(tc.says, "nothing") || tc.says == "layers" {
				items = tc.items
			}
			_, err := s.ImportTar(t.Context(), bytes.NewReader(archive(t, items...)), Limits{})
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("case 40: there is still %v", left)
			}
		})
	}
}

// What is no tar archive is refused with what it is.
func TestNoArchive(t *testing.T) {
	s, _ := newStore(t)
	whole := archive(t, item{name: "a", content: strings.Repeat("x", 5000)})
	for _, tc := range []struct{ name, data, says string }{
		{"nothing", "", "nothing in it"},
		{"text", strings.Repeat("not an archive ", 100), "no tar archive"},
		{"cut in a file", string(whole[:2000]), "ends within a file"},
		{"zstd", "\x28\xb5\x2f\xfd....", "zstd"},
		{"xz", "\xfd7zXZ\x00..", "xz"},
		{"cut gzip", "\x1f\x8b\x08", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := s.ImportTar(t.Context(), strings.NewReader(tc.data), Limits{})
			if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want ErrContent with %q", err, tc.says)
			}
		})
	}
}

// Each limit holds at its value and not above it.
func TestLimits(t *testing.T) {
	data := archive(t, item{name: "a/b", content: "12345"}, item{name: "c", content: "678"}, item{name: "p", kind: tar.TypeFifo}, item{name: "d", kind: tar.TypeLink, target: "c"}, item{name: "e", kind: tar.TypeSymlink, target: "a/b"})
	for _, tc := range []struct {
		name   string
		limits Limits
		ok     bool
	}{
		{"all at their value", Limits{Entries: 6, Bytes: 11, PathBytes: 3, Depth: 2, TextBytes: 10}, true},
		{"one entry less", Limits{Entries: 5}, false},
		{"one byte of names less", Limits{TextBytes: 9}, false},
		{"negative for names", Limits{TextBytes: -1}, false},
		{"one byte less", Limits{Bytes: 10}, false}, // TM-23: what has two names is read, and sent on, for each
		{"one element less", Limits{Depth: 1}, false},
		{"negative", Limits{Bytes: -1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := newStore(t)
			made, err := s.ImportTar(t.Context(), bytes.NewReader(data), tc.limits)
			if err == nil {
				made.Image.Close()
			}
			if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrContent) {
				t.Errorf("err = %v, want none: %v", err, tc.ok)
			}
		})
	}
	// Nobody has to ask for the limit of all names together.
	names := newTree(Limits{})
	if err := names.name(strings.Repeat("a", DefaultTextBytes-1), "b"); err != nil {
		t.Errorf("names at the default limit: %v", err)
	}
	if err := names.name("", "b"); !errors.Is(err, ErrContent) {
		t.Errorf("names above the default limit: err = %v, want ErrContent", err)
	}
	// An archive that is small when it is compressed does not get to be large.
	bomb, writer := io.Pipe()
	go func() {
		z := gzip.NewWriter(writer)
		w := tar.NewWriter(z)
		_ = w.WriteHeader(&tar.Header{Name: "zeros", Size: 1 << 40})
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}()
	defer bomb.Close()
	s, _ := newStore(t)
	if _, err := s.ImportTar(t.Context(), bomb, Limits{Bytes: 1 << 20}); !errors.Is(err, ErrContent) {
		t.Errorf("a bomb: err = %v", err)
	}
}

// Devices, pipes and sockets are left out and named.
func TestSkipped(t *testing.T) {
	s, dir := newStore(t)
	made := take(t, s, archive(t, item{name: "dev/null", kind: tar.TypeChar}, item{name: "dev/sda", kind: tar.TypeBlock}, item{name: "pipe", kind: tar.TypeFifo},
		item{name: "file"}))
	if want := []string{`"dev/null": a device`, `"dev/sda": a device`, `"pipe": a pipe`}; !cmp.Equal(made.Skipped, want) || made.Left != 3 {
		t.Errorf("left out %q (%d), want %q", made.Skipped, made.Left, want)
	}
	from := filepath.Join(dir, "..", "from")
	if err := errors.Join(os.Mkdir(from, 0o700), unix.Mkfifo(filepath.Join(from, "pipe"), 0o600), os.WriteFile(filepath.Join(from, "file"), nil, 0o600),
		os.Chtimes(filepath.Join(from, "file"), time.Time{}, time.Unix(1_700_000_000, 0))); err != nil {
		t.Fatal(err)
	}
	again, err := s.ImportFolder(t.Context(), from, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Image.Close()
	if again.Digest != made.Digest || !cmp.Equal(again.Skipped, []string{`"pipe": a pipe`}) {
		t.Errorf("the folder has the digest %s, want %s; left out %q", again.Digest, made.Digest, again.Skipped)
	}
}

// A sparse file has its bytes, and stays sparse; a name that is no UTF-8 is a
// name; hard links of a folder stay one file.
func TestFolder(t *testing.T) {
	s, dir := newStore(t)
	from := filepath.Join(dir, "..", "from")
	sparse := filepath.Join(from, "sparse")
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "d\xff"), 0o700), os.WriteFile(filepath.Join(from, "d\xff", "f\xfe"), []byte("x"), 0o600),
		os.WriteFile(sparse, []byte("begin"), 0o600), os.Truncate(sparse, 64<<20), os.Link(sparse, filepath.Join(from, "zlink"))); err != nil {
		t.Fatal(err)
	}
	made, err := s.ImportFolder(t.Context(), from, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Image.Close()
	f, err := made.Image.Open("/zlink")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	st := info.Sys().(*syscall.Stat_t)
	if info.Size() != 64<<20 || st.Nlink != 2 || st.Blocks*512 > 1<<20 {
		t.Errorf("%d bytes in %d blocks with %d names", info.Size(), st.Blocks, st.Nlink)
	}
	if err := s.Verify(t.Context(), made.Digest); err != nil {
		t.Error(err)
	}
}

// Whatever changes in an image shows.
func TestVerify(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(root string) error
		says   string
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"a byte", func(r string) error { return os.WriteFile(r+"/usr/share/text", []byte("tExt"), 0o444) }, "usr/share/text"},
		{"a mode", func(r string) error { return os.Chmod(r+"/usr/share/text", 0o555) }, "usr/share/text"},
		{"a right to write", func(r string) error { return os.Chmod(r+"/empty", 0o755) }, "empty"},
		{"a time", func(r string) error { return os.Chtimes(r+"/usr/bin/run", time.Time{}, time.Unix(1, 0)) }, "usr/bin"},
		{"another file", func(r string) error { return os.WriteFile(r+"/usr/share/more", nil, 0o444) }, "usr/share/more"},
		{"a missing file", func(r string) error { return os.Remove(r + "/usr/share/text") }, "usr/share/text"},
		{"a link", func(r string) error {
			return errors.Join(os.Remove(r+"/etc/absolute"), os.Symlink("/etc/passwd", r+"/etc/absolute"))
		}, "etc/absolute"},
		{"a pipe", func(r string) error { return unix.Mkfifo(r+"/empty/pipe", 0o444) }, "empty/pipe"},
		{"the manifest", func(r string) error { return os.WriteFile(r+"/../manifest", []byte(manifestDomain), 0o400) }, "manifest"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := newStore(t)
			made := take(t, s, archive(t, small...))
			root := filepath.Join(dir, made.Digest.Hex(), rootName)
			for _, d := range []string{"usr/share", "etc", "empty"} {
				_ = os.Chmod(filepath.Join(root, d), 0o755)
			}
			for _, f := range []string{"usr/share/text", "../manifest"} {
				_ = os.Chmod(filepath.Join(root, f), 0o644)
			}
			if err := tc.change(root); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"usr/share", "etc", "empty"} {
				if tc.says != d {
					_ = os.Chmod(filepath.Join(root, d), 0o555)
				}
			}
			if tc.name != "a mode" {
				_ = os.Chmod(filepath.Join(root, "usr/share/text"), 0o444)
			}
			err := s.Verify(t.Context(), made.Digest)
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("err = %v, want ErrDamaged with %q", err, tc.says)
			}
		})
	}
}

// What somebody holds is not removed, and what is removed is gone.
func TestRemove(t *testing.T) {
	s, _ := newStore(t)
	made, err := s.ImportTar(t.Context(), bytes.NewReader(archive(t, small...)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(made.Digest); !errors.Is(err, ErrInUse) {
		t.Errorf("while its import holds it: %v, want ErrInUse", err)
	}
	made.Image.Close()
	held, err := s.Image(made.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(made.Digest); !errors.Is(err, ErrInUse) {
		t.Errorf("while it is held: %v, want ErrInUse", err)
	}
	if gone, err := s.Prune(func(bundle.Digest) bool { return false }); err != nil || len(gone) > 0 {
		t.Errorf("pruned %v, %v while it is held", gone, err)
	}
	held.Close()
	if gone, err := s.Prune(func(d bundle.Digest) bool { return d == made.Digest }); err != nil || len(gone) > 0 {
		t.Errorf("pruned %v, %v though it was to be kept", gone, err)
	}
	if err := s.Remove(made.Digest); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{"removing": s.Remove(made.Digest), "verifying": s.Verify(t.Context(), made.Digest)} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s what is gone: %v, want ErrNotFound", name, err)
		}
	}
	if _, err := s.Image(made.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("opening what is gone: %v, want ErrNotFound", err)
	}
}

// Imports of the same and of others at once, beside removals, each leave what they
// say: an image that is whole, or none.
func TestAtOnce(t *testing.T) {
	s, _ := newStore(t)
	data := [2][]byte{archive(t, small...), archive(t, item{name: "other", content: "x"})}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			made, err := s.ImportTar(t.Context(), bytes.NewReader(data[n%2]), Limits{})
			if errors.Is(err, ErrInUse) || errors.Is(err, ErrNotFound) {
				return // somebody removed it in that very moment
			}
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Verify(t.Context(), made.Digest); err != nil {
				t.Errorf("while it is held: %v", err)
			}
			made.Image.Close()
			if err := s.Remove(made.Digest); err != nil && !errors.Is(err, ErrInUse) && !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// What a dead import left is removed by the next, what a living one has is not.
func TestLeftovers(t *testing.T) {
	s, dir := newStore(t)
	for _, name := range []string{"dead", "living"} {
		if err := os.MkdirAll(filepath.Join(dir, unfinished+name, rootName, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, unfinished+"dead", rootName), 0o555); err != nil {
		t.Fatal(err)
	}
	living, err := os.Open(filepath.Join(dir, unfinished+"living"))
	if err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	if err := unix.Flock(int(living.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	take(t, s, archive(t, small...)).Image.Close()
	if _, err := os.Stat(filepath.Join(dir, unfinished+"dead")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a dead import left is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, unfinished+"living", rootName, "a")); err != nil {
		t.Errorf("what a living import has: %v", err)
	}
	living.Close()
	take(t, s, archive(t, small...)).Image.Close()
}

// An import that was stopped leaves nothing and says who stopped it.
func TestCancelled(t *testing.T) {
	s, dir := newStore(t)
	why := errors.New("the operator left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.ImportTar(ctx, bytes.NewReader(archive(t, small...)), Limits{}); !errors.Is(err, why) {
		t.Errorf("err = %v, want the cause", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("case 40: there is still %v", left)
	}
}
