//go:build linux

package image

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tracon-go/tracon/bundle"
)

// Of what an image asks for, runs see where its programs lie, its language and its
// time zone; nothing that steers a loader or an interpreter, and no value that is more
// than it should be.
func TestTakeEnvironment(t *testing.T) {
	for _, tc := range []struct{ asked, taken string }{
		{"PATH=/opt/venv/bin:/usr/bin", "/opt/venv/bin:/usr/bin"},
		{"LANG=de_DE.UTF-8", "de_DE.UTF-8"},
		{"LC_ALL=C", "C"},
		{"LC_TIME=en_GB@euro", "en_GB@euro"},
		{"TZ=Europe/Berlin", "Europe/Berlin"},
		{"TZ=Etc/GMT+1", "Etc/GMT+1"},
		{"PATH=relative:/bin", "-"}, {"PATH=/bin:", "-"}, {"PATH=", "-"}, {"PATH=/bin:/../x", "-"}, {"PATH=/a\nb", "-"}, {"PATH=/\xff", "-"}, {"PATH=$PATH:/x", "-"},
		{"PATH=/" + strings.Repeat("a", maxVariable), "-"},
		{"LANG=/tmp/evil", "-"}, {"LANG=../x", "-"}, {"LANG=", "-"}, {"LC_ALL=a:b", "-"}, {"LC_EVERYTHING=C", "-"}, {"LANGUAGE=de", "-"}, {"LOCPATH=/x", "-"},
		{"TZ=:/etc/shadow", "-"}, {"TZ=/etc/shadow", "-"}, {"TZ=../../etc/shadow", "-"}, {"TZ=Europe/../x", "-"},
		{"PYTHONPATH=/x", "-"}, {"PYTHON_VERSION=3.12", "-"}, {"LD_PRELOAD=/x.so", "-"}, {"NODE_OPTIONS=--require=/x", "-"}, {"BASH_ENV=/x", "-"}, {"HOME=/root", "-"},
		{"TMPDIR=/x", "-"}, {"https_proxy=http://x", "-"}, {"path=/bin", "-"}, {"DEBIAN_FRONTEND=noninteractive", "-"}, {"novalue", "-"}, {"=x", "-"},
	} {
		name, _, _ := strings.Cut(tc.asked, "=")
		taken, left := TakeEnvironment([]string{tc.asked})
		if tc.taken == "-" && (len(taken) > 0 || !slices.Equal(left, []string{name})) || tc.taken != "-" && (taken[name] != tc.taken || len(left) > 0) {
			t.Errorf("%.60q: taken %v, left out %q", tc.asked, taken, left)
		}
	}
	// What runs see anyway is no setting.
	if taken, left := TakeEnvironment([]string{"PATH=" + SearchPath, "LANG=" + Language, "TZ=" + Zone}); len(taken)+len(left) > 0 {
		t.Errorf("the usual: taken %v, left out %q", taken, left)
	}
	// What comes twice is nobody's.
	if taken, left := TakeEnvironment([]string{"LANG=C", "LANG=de_DE.UTF-8", "LANG=C"}); len(taken) > 0 || !slices.Equal(left, []string{"LANG"}) {
		t.Errorf("three times: taken %v, left out %q", taken, left)
	}
}

// An image with an environment has a digest of its own that covers it; the same files
// have the same tree. It never changes.
func TestSettings(t *testing.T) {
	s, _ := newStore(t)
	plain := take(t, s, archive(t, small...))
	made, err := s.ImportLayers(t.Context(), layersOf(t, small), []string{"PATH=/opt/bin:/usr/bin", "PYTHONPATH=/x", "LANG=C.UTF-8"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer made.Image.Close()
	want := map[string]string{"PATH": "/opt/bin:/usr/bin"}
	if made.Tree != plain.Digest || made.Digest == plain.Digest || !maps.Equal(made.Image.Environment(), want) || !maps.Equal(made.Environment, want) {
		t.Errorf("it is %+v with %v", made.Info, made.Image.Environment())
	}
	const known = "sha256:" + knownSettings
	if made.Digest.String() != known {
		t.Errorf("digest %s, want %s", made.Digest, known)
	}
	if made.Left != 1 || len(made.Skipped) != 1 || !strings.Contains(made.Skipped[0], `"PYTHONPATH"`) {
		t.Errorf("left out %q", made.Skipped)
	}
	if info, err := s.Info(made.Digest); err != nil || !cmp.Equal(info, made.Info) {
		t.Errorf("info %+v, %v", info, err)
	}
	again, err := s.ImportLayers(t.Context(), layersOf(t, small), []string{"PATH=/opt/bin:/usr/bin"}, Limits{})
	if err != nil || again.Digest != made.Digest {
		t.Fatalf("again %v, %v", again, err)
	}
	again.Image.Close()
	usual, err := s.ImportLayers(t.Context(), layersOf(t, small), []string{"PATH=" + SearchPath}, Limits{})
	if err != nil || usual.Digest != plain.Digest {
		t.Fatalf("with the usual environment %v, %v", usual, err)
	}
	usual.Image.Close()
}

// knownSettings is the digest of small with PATH=/opt/bin:/usr/bin, computed by
// another program from the package comment.
const knownSettings = "4b41169b0de1b60aa135e627b8c0bc5876cf8479fadb89b57b86f2e36594c539"

// Settings that were altered at rest are found when the image is opened, and where
// they were taken away, when it is verified; an import of the same mends both.
func TestSettingsAltered(t *testing.T) {
	other := settings(bundle.Sum([]byte("x")), map[string]string{"PATH": "/evil"})
	for _, tc := range []struct {
		name        string
		environment []string
		change      func(file string) error
		opens       bool
	}{
		{"others", []string{"PATH=/opt/bin"}, func(f string) error {
			return errors.Join(os.Chmod(f, 0o600), os.WriteFile(f, other, 0o400))
		}, false},
		{"taken away", []string{"PATH=/opt/bin"}, os.Remove, true},
		{"given to one without", nil, func(f string) error { return os.WriteFile(f, other, 0o400) }, false},
		{"a folder", nil, func(f string) error { return os.Mkdir(f, 0o700) }, false},
		{"a link", nil, func(f string) error { return os.Symlink("manifest", f) }, false},
		{"endless", nil, func(f string) error { return errors.Join(os.WriteFile(f, nil, 0o600), os.Truncate(f, 1<<40)) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, at := newStore(t)
			load := func() *Import {
				t.Helper()
				made, err := s.ImportLayers(t.Context(), layersOf(t, small), tc.environment, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				made.Image.Close()
				return made
			}
			made := load()
			if err := tc.change(filepath.Join(at, made.Digest.Hex(), settingsName)); err != nil {
				t.Fatal(err)
			}
			i, err := s.Image(made.Digest)
			if err == nil {
				i.Close()
			}
			if (err == nil) != tc.opens || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("opening says %v", err)
			}
			if err := s.Verify(t.Context(), made.Digest); !errors.Is(err, ErrDamaged) {
				t.Errorf("verifying says %v, want ErrDamaged", err)
			}
			if again := load(); !cmp.Equal(again.Info, made.Info) {
				t.Errorf("imported again it is %+v", again.Info)
			}
			if err := s.Verify(t.Context(), made.Digest); err != nil {
				t.Error(err)
			}
		})
	}
}

// Settings that are read are those that would be written.
func FuzzSettings(f *testing.F) {
	f.Add(settings(bundle.Sum([]byte("x")), map[string]string{"PATH": "/a:/b", "LANG": "C", "TZ": "Europe/Berlin"}))
	f.Add(settings(bundle.Digest{}, nil))
	f.Add([]byte(settingsDomain))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, environment, err := parseSettings(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		if got := settings(files, environment); !bytes.Equal(got, b) {
			t.Errorf("read %q, would write %q", b, got)
		}
	})
}
