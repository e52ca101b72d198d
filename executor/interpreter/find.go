package interpreter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Extensions returns the extensions that Find knows, sorted.
func Extensions() []string { return slices.Sorted(maps.Keys(extensions)) }

// Find searches the folders of PATH for what runs scripts of the extension and
// returns the first that [Probe] accepts. A real executable anywhere on PATH is
// preferred to a script that stands before it: that is a version manager's shim,
// which costs ten times a start and chooses anew at each. A relative folder on
// PATH is passed over: what it names depends on where the host was started.
//
// # Errors
//
// A *NotAvailableError that names every path that was tried; the cause of ctx
// when it is done.
func Find(ctx context.Context, extension string) (Found, error) {
	return FindFor(ctx, extension, func(Found) error { return nil })
}

// FindFor is [Find] for an executor that cannot start every file of this host: one for
// which usable returns an error is passed over, and the error says why. In an activated
// virtual environment the first python3 on PATH lies where a box shows nothing.
//
// # Errors
//
// Those of [Find].
func FindFor(ctx context.Context, extension string, usable func(Found) error) (Found, error) {
	rule, ok := extensions[extension]
	if !ok {
		return Found{}, &NotAvailableError{Extension: extension, Remedy: "name the path of what runs it in the allow-list"}
	}
	fail := &NotAvailableError{Extension: extension, Remedy: remedy(extension)}
	for _, path := range candidates(rule.names) {
		f, err := probe(ctx, extension, path)
		if ctx.Err() != nil {
			return Found{}, context.Cause(ctx)
		}
		if err == nil {
			err = usable(f)
		}
		if err == nil {
			return f, nil
		}
		fail.Tried = append(fail.Tried, Attempt{path, err})
	}
	if len(fail.Tried) == 0 {
		fail.Tried = []Attempt{{rule.names[0], fmt.Errorf("it is in no folder of PATH (%s)", os.Getenv("PATH"))}}
	}
	return Found{}, fail
}

// candidates returns the files on PATH that have one of the names: for each name
// the real executables, and behind all of those the scripts.
func candidates(names []string) []string {
	type place struct{ folder, file os.FileInfo }
	var real, scripts []string
	var seen []place
	for _, name := range names {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if !filepath.IsAbs(dir) {
				continue
			}
			path := filepath.Join(dir, name)
			info, err := os.Stat(path)
			if err != nil && errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() {
				continue
			}
			if folder, ferr := os.Stat(dir); err == nil && ferr == nil {
				// /bin is often a link to /usr/bin. A link in another folder is another
				// place: an executor may see one of them alone.
				if slices.ContainsFunc(seen, func(s place) bool { return os.SameFile(s.folder, folder) && os.SameFile(s.file, info) }) {
					continue
				}
				seen = append(seen, place{folder, info})
			}
			if script, err := isScript(path); err == nil && script {
				scripts = append(scripts, path)
				continue
			}
			real = append(real, path)
		}
	}
	return append(real, scripts...)
}
