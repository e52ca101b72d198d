//go:build unix

package box

import (
	"os"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// Adopt returns a Run of folders that somebody else laid out, so that they are
// collected as any other. All that it needs of them are these descriptors, and
// skill and given are what was laid out at the time laid, by the clock of the
// file system. Reach is the path by which the script finds outputs/. Only Collect may be called; the descriptors stay the caller's.
func Adopt(folders Folders, skill, given bundle.Bundle, laid time.Time, reach string) *Run {
	return &Run{reach: reach, skill: folders.Skill, inputs: folders.Inputs, outputs: folders.Outputs, bundle: skill, given: given, laid: laid}
}

// AdoptNodes is Adopt for folders that are not this host's.
func AdoptNodes(look Nodes, skill, given bundle.Bundle, laid time.Time, reach string) *Run {
	return &Run{reach: reach, look: look, bundle: skill, given: given, laid: laid}
}

// nodes returns the folders that are looked at.
func (r *Run) nodes() Nodes {
	if r.look.Skill != nil {
		return r.look
	}
	n := Nodes{Skill: local{r.skill}, Inputs: local{r.inputs}, Outputs: local{r.outputs}}
	if r.folder != nil { // in a folder that was adopted there is none
		n.Around = local{r.folder}
	}
	return n
}

// Folders are those of a run that are looked at when its script has ended.
type Folders struct{ Skill, Inputs, Outputs *os.File }

// Close closes them.
func (f Folders) Close() {
	for _, f := range []*os.File{f.Skill, f.Inputs, f.Outputs} {
		if f != nil {
			f.Close()
		}
	}
}
