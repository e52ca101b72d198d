package interpreter

import (
	"maps"
	"slices"

	"github.com/tracon-go/tracon/image"
)

// Environment returns the variables of a run, each NAME=VALUE, built from empty: the
// fixed set, with what the runtime in sets in its place (in may be nil), and what the
// policy adds. Home and tmp are folders of the run.
func Environment(in *image.Image, home, tmp string, more map[string]string) []string {
	fixed := map[string]string{"PATH": SearchPath, "HOME": home, "TMPDIR": tmp, "LANG": image.Language, "TZ": image.Zone}
	if in != nil {
		maps.Copy(fixed, in.Environment())
	}
	var env []string
	for _, list := range []map[string]string{fixed, more} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			env = append(env, name+"="+list[name])
		}
	}
	return env
}
