package image

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
)

// What a run sees of these variables where the image it runs in says nothing.
const (
	SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	Language   = "C.UTF-8"
	Zone       = "UTC"
)

// maxVariable is how many bytes the value of a variable may have.
const maxVariable = 4 << 10

var (
	locale = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$`)
	zone   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z][A-Za-z0-9_+-]{0,31}){0,3}$`)
)

// TakeEnvironment divides the variables that an image asks for, each NAME=VALUE, into
// those that its runs see and the names of those that they do not.
//
// They see which folders the image's programs lie in and what language and time zone
// they speak: PATH with absolute paths, LANG, LC_* and TZ, each where its value is no
// more than that. Whatever steers a loader or an interpreter is the host's and the
// policy's affair, and what nobody knows the meaning of is not passed on. What runs
// see anyway is in neither.
func TakeEnvironment(asked []string) (taken map[string]string, left []string) {
	taken = map[string]string{}
	said := map[string]bool{}
	for _, a := range asked {
		name, value, ok := strings.Cut(a, "=")
		switch {
		case !ok || said[name] || !fits(name, value):
			delete(taken, name) // whichever is meant
			left = append(left, name)
		case value != usual(name):
			taken[name] = value
		}
		said[name] = true
	}
	slices.Sort(left)
	return taken, slices.Compact(left)
}

func usual(name string) string {
	return map[string]string{"PATH": SearchPath, "LANG": Language, "TZ": Zone}[name]
}

// fits reports whether an image may set the variable.
func fits(name, value string) bool {
	switch {
	case len(value) > maxVariable:
		return false
	case name == "PATH":
		for dir := range strings.SplitSeq(value, ":") {
			if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
				return false
			}
		}
		return true
	case name == "LANG", slices.Contains(categories, name):
		return locale.MatchString(value)
	case name == "TZ":
		return zone.MatchString(value)
	}
	return false
}

// categories are what a locale divides into.
var categories = []string{"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME"}

// settingsDomain begins what the digest of an image is of that has an environment, so
// that no other digest can be taken for one.
const settingsDomain = "tracon/image/2"

// settings returns the bytes that the digest of an image with an environment is of.
func settings(files bundle.Digest, environment map[string]string) []byte {
	b := append([]byte(settingsDomain), files[:]...)
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		b = appendText(appendText(b, name), environment[name])
	}
	return b
}

// maxSettings is how many bytes the settings may have.
const maxSettings = 64 << 10

// parseSettings reads what settings writes, and nothing else.
func parseSettings(b []byte) (files bundle.Digest, environment map[string]string, err error) {
	wrong := func(what string) (bundle.Digest, map[string]string, error) {
		return bundle.Digest{}, nil, fmt.Errorf("%w: its settings: %s", ErrDamaged, what)
	}
	rest, ok := strings.CutPrefix(string(b), settingsDomain)
	if !ok || len(rest) < len(files) || len(b) > maxSettings {
		return wrong("another beginning")
	}
	copy(files[:], rest)
	rest = rest[len(files):]
	environment = map[string]string{}
	for before := ""; rest != ""; {
		name, ok := cutText(&rest)
		value, whole := cutText(&rest)
		if !ok || !whole || name <= before || !fits(name, value) || value == usual(name) {
			return wrong("a variable")
		}
		environment[name], before = value, name
	}
	if len(environment) == 0 {
		return wrong("no variable")
	}
	return files, environment, nil
}
