package box

import (
	"errors"
	"os"

	"github.com/tracon-go/tracon/bundle"
)

// LayIn lays skill and inputs out in a folder that was made for the run. Inside the
// skill's folder, inputs/ and outputs/ are empty folders, unless the skill has such
// names itself: whoever shows the folders mounts those beside it there. Reach is the
// path by which the script finds outputs/. Collect may be called, and Close; nothing
// is removed.
func LayIn(folder *os.File, skill, inputs bundle.Bundle, reach string) (*Run, error) {
	r := &Run{folder: folder, reach: reach}
	err := r.lay(skill, inputs, func(skill *os.File) error {
		for _, name := range []string{InputsDir, OutputsDir} {
			if err := mkdir(skill, name); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
		}
		return nil
	})
	folder.Close()
	r.folder = nil // nothing lies beside outputs/ but the skill's own files
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the folders and removes nothing.
func (r *Run) Close() {
	for _, f := range []*os.File{r.skill, r.inputs, r.outputs} {
		if f != nil {
			f.Close()
		}
	}
}
