//go:build unix

package box

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// The folders of a run.
const (
	SkillDir   = "skill"   // the skill's files; the working directory
	InputsDir  = "inputs"  // the call's input files
	OutputsDir = "outputs" // what is collected
	TmpDir     = "tmp"
	HomeDir    = "home"
)

// A Run is the private folder of one run. Its methods are called one after the
// other.
type Run struct {
	instance *Instance
	folder   *os.File
	skill    *os.File
	inputs   *os.File
	outputs  *os.File
	look     Nodes // the three, where they are not this host's
	name     string
	dir      string

	bundle bundle.Bundle // what was laid out in the skill's folder
	given  bundle.Bundle // what was laid out below inputs/
	laid   time.Time     // when, by the clock of the file system
	reach  string        // how a script reaches outputs/ from the skill's folder, where that is no link
}

// NewRun makes a folder with a name that nobody can guess. Whoever makes a Run
// removes it.
func (i *Instance) NewRun() (*Run, error) {
	r := &Run{instance: i, name: rand.Text()}
	r.dir = filepath.Join(i.dir, r.name)
	var err error
	if r.folder, err = makeDir(i.folder, r.name); err != nil {
		return nil, fmt.Errorf("box: the folder of a run: %w", err)
	}
	return r, nil
}

// Name returns the run's name, which no other has.
func (r *Run) Name() string { return r.name }

// Dir returns the folder of the run.
func (r *Run) Dir() string { return r.dir }

// Path returns the path of a file of the run, which is named by its elements.
func (r *Run) Path(elem ...string) string {
	return filepath.Join(append([]string{r.dir}, elem...)...)
}

// Lay lays skill and inputs out from their bytes, every file writable and
// executable by its owner, and makes the other folders. Inside the skill's
// folder, inputs/ and outputs/ are links to those beside it, unless the skill
// has such names itself.
func (r *Run) Lay(skill, inputs bundle.Bundle) error { return r.lay(skill, inputs, linkAll) }

// lay is Lay; reach makes inputs/ and outputs/ in the skill's folder.
func (r *Run) lay(skill, inputs bundle.Bundle, reach func(skill *os.File) error) error {
	r.bundle, r.given = skill, inputs
	for _, d := range []struct {
		name  string
		files bundle.Bundle
		keep  **os.File // where the folder stays open, because it is looked at when the script has ended
	}{{SkillDir, skill, &r.skill}, {InputsDir, inputs, &r.inputs}, {OutputsDir, bundle.Bundle{}, &r.outputs}} {
		f, err := makeDir(r.folder, d.name)
		if err != nil {
			return fmt.Errorf("box: the folder of a run: %w", err)
		}
		*d.keep = f
		if err := writeTree(f, d.files); err != nil {
			return fmt.Errorf("box: laying out %s: %w", d.name, err)
		}
	}
	if err := reach(r.skill); err != nil {
		return fmt.Errorf("box: laying out %s: %w", SkillDir, err)
	}
	for _, name := range []string{TmpDir, HomeDir} {
		if err := mkdir(r.folder, name); err != nil {
			return fmt.Errorf("box: the folder of a run: %w", err)
		}
	}
	// The folder has just changed, so its time is now, in the ticks in which the file
	// system counts.
	var st unix.Stat_t
	if err := unix.Fstat(int(r.folder.Fd()), &st); err != nil {
		return fmt.Errorf("box: the folder of a run: %w", err)
	}
	r.laid = modified(st)
	return nil
}

func linkAll(skill *os.File) error {
	for _, name := range []string{InputsDir, OutputsDir} {
		err := unix.Symlinkat("../"+name, int(skill.Fd()), name)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return &os.PathError{Op: "symlink", Path: name, Err: err}
		}
	}
	return nil
}

// writeTree writes the files below the folder. The paths are sorted, so each
// folder is made once and held open as long as files for it come.
func writeTree(folder *os.File, b bundle.Bundle) error {
	var open []*os.File // the folders of the path at hand
	var names []string
	closeFrom := func(n int) {
		for _, f := range open[n:] {
			f.Close()
		}
		open, names = open[:n], names[:n]
	}
	defer func() { closeFrom(0) }()
	at := func() *os.File {
		if len(open) == 0 {
			return folder
		}
		return open[len(open)-1]
	}
	for _, p := range b.Paths() {
		elems := strings.Split(p, "/")
		dirs, base := elems[:len(elems)-1], elems[len(elems)-1]
		same := 0
		for same < len(dirs) && same < len(names) && dirs[same] == names[same] {
			same++
		}
		closeFrom(same)
		for _, d := range dirs[same:] {
			f, err := makeDir(at(), d)
			if err != nil {
				return err
			}
			open, names = append(open, f), append(names, d)
		}
		text, _, _ := b.Text(p)
		if err := writeFile(at(), base, text); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// writeFile holds the fork lock: a process that is forked meanwhile would have
// the file open for writing until it executes, and until then nobody could
// execute the file ("text file busy").
func writeFile(folder *os.File, name, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := openAt(folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Remove removes the folder and everything that is in it now.
func (r *Run) Remove() error {
	for _, f := range []*os.File{r.skill, r.inputs, r.outputs, r.folder} {
		if f != nil {
			f.Close()
		}
	}
	if err := removeTree(r.instance.folder, r.name); err != nil {
		return fmt.Errorf("box: removing %s: %w", r.dir, err)
	}
	return nil
}
