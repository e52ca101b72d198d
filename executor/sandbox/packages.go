//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/internal/notes"
	"github.com/tracon-go/tracon/executor/interpreter"
	"github.com/tracon-go/tracon/image"
	"golang.org/x/sys/unix"
)

// What a look for a package is bounded by: a script ends before its result is
// there, and a note is not worth a long wait.
const (
	lookTime     = 2 * time.Second
	mostRuntimes = 64 // that are looked into
	mostPythons  = 16 // versions of Python in one of them
)

// explain returns notes on how the script of req failed.
func (e *Executor) explain(ctx context.Context, req executor.Request, stderr []byte) []string {
	f := notes.FailureOf(req, stderr)
	in := req.Interpreter()
	kind := interpreter.KindOf(req.Extension(), in.Path)
	f.Elsewhere = func(name string) []string { return e.runtimesWith(ctx, kind, name) }
	return notes.Explain(f)
}

// runtimesWith returns the names of the kept runtimes that have the package. One
// that cannot be read has none.
func (e *Executor) runtimesWith(ctx context.Context, kind interpreter.Kind, name string) (list []string) {
	if e.config.Images == nil || e.config.Names == nil || kind != interpreter.Python && kind != interpreter.Node {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	kept, err := e.config.Names(ctx)
	if err != nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(kept))
	for _, runtime := range names[:min(len(names), mostRuntimes)] {
		if ctx.Err() != nil {
			break
		}
		i, err := e.config.Images.Image(kept[runtime])
		if err != nil {
			continue
		}
		if hasPackage(i, kind, name) {
			list = append(list, runtime)
		}
		i.Close()
	}
	return list
}

// Where the packages of Node lie in a runtime.
var nodeFolders = []string{"node_modules", "usr/lib/node_modules", "usr/local/lib/node_modules", "usr/share/nodejs", "usr/share/node_modules"}

// hasPackage reports whether the package lies where programs of that kind have
// theirs. The name comes from what a script wrote: it only is one or two elements
// more of a path that the image alone resolves.
func hasPackage(i *image.Image, kind interpreter.Kind, name string) bool {
	if kind == interpreter.Python {
		name = strings.ReplaceAll(name, ".", "/")
	}
	if !fs.ValidPath(name) || name == "." || strings.Count(name, "/") > 8 {
		return false
	}
	if kind == interpreter.Node {
		return slices.ContainsFunc(nodeFolders, func(dir string) bool { return inImage(i, dir+"/"+name) })
	}
	for _, lib := range []string{"usr/lib", "usr/local/lib"} {
		for _, python := range pythons(i, lib) {
			for _, packages := range []string{"site-packages", "dist-packages"} {
				at := lib + "/" + python + "/" + packages + "/" + name
				if inImage(i, at) || inImage(i, at+".py") {
					return true
				}
			}
		}
	}
	return false
}

// pythons returns the folders of versions of Python, such as "python3.12".
func pythons(i *image.Image, lib string) (list []string) {
	f, err := i.OpenAny(lib, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "python3") })
	slices.Sort(names)
	return names[:min(len(names), mostPythons)]
}

func inImage(i *image.Image, name string) bool {
	f, err := i.OpenAny(name, unix.O_PATH)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
