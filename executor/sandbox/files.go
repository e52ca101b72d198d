//go:build linux && (amd64 || arm64)

package sandbox

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"golang.org/x/sys/unix"
)

// maxInodes is how many files and folders a run may make.
const maxInodes = 4096

// blocks returns how many bytes of memory the files take.
func blocks(b bundle.Bundle) (bytes int64, inodes int) {
	for _, p := range b.Paths() {
		text, _, _ := b.Text(p)
		bytes += (int64(len(text)) + pageSize - 1) &^ (pageSize - 1)
	}
	return bytes, len(b.Paths()) + len(folders(b))
}

// folders returns the folders of the files, each behind the one that it is in.
func folders(b bundle.Bundle) []string {
	var list []string
	seen := map[string]bool{}
	for _, p := range b.Paths() {
		var above []string
		for d := path.Dir(p); d != "." && !seen[d]; d = path.Dir(d) {
			seen[d] = true
			above = append(above, d)
		}
		slices.Reverse(above)
		list = append(list, above...)
	}
	return list
}

func has(b bundle.Bundle, name string) bool {
	return slices.ContainsFunc(b.Paths(), func(p string) bool { return p == name || strings.HasPrefix(p, name+"/") })
}

// Taken says which names of a run's folders a skill has itself.
type taken struct{ inputs, outputs bool }

func takenBy(skill bundle.Bundle) taken { return taken{has(skill, "inputs"), has(skill, "outputs")} }

// A place is a folder of the run and how it is mounted.
type place struct {
	from  string // in the run's own file system
	at    string
	flags uint64
}

// places returns where the folders of a run are mounted. Inside the skill's
// folder, inputs/ and outputs/ are the same folders once more, unless the skill
// has such names itself.
func places(t taken) []place {
	const closed = attrClosed | unix.MOUNT_ATTR_NOSYMFOLLOW
	list := []place{
		{"skill", skillDir, closed},
		{"inputs", inputsDir, closed | unix.MOUNT_ATTR_NOEXEC},
		{"outputs", outputsDir, closed | unix.MOUNT_ATTR_NOEXEC},
		{"tmp", tmpDir, closed | unix.MOUNT_ATTR_NOEXEC},
		{"shm", shmDir, closed | unix.MOUNT_ATTR_NOEXEC},
	}
	if !t.inputs {
		list = append(list, place{"inputs", skillDir + "/inputs", closed | unix.MOUNT_ATTR_NOEXEC})
	}
	if !t.outputs {
		list = append(list, place{"outputs", skillDir + "/outputs", closed | unix.MOUNT_ATTR_NOEXEC})
	}
	return list
}

// places mounts the folders of a run, which are parts of one file system. It has
// no space until the files are laid out.
func (s *setup) places(p *program, root variable, f frame) {
	p.stage = stageFiles
	work := p.filesystem("tmpfs", attrClosed, "mode", "0700", "size", strconv.Itoa(pageSize), "nr_inodes", "32")
	// It must be somewhere to be shown in parts. Here it goes with the host's root: to
	// take it away by itself would cost a grace period of the kernel, 0.2 ms.
	p.attach(work, atCwd, "/dev")
	list := places(f.taken)
	for _, d := range []string{"skill", "inputs", "outputs", "tmp", "tmp/home", "shm"} {
		p.mkdir(work.value(), d, 0o700)
	}
	for _, pl := range list {
		if name, ok := strings.CutPrefix(pl.at, skillDir+"/"); ok {
			p.mkdir(work.value(), "skill/"+name, 0o700)
		}
	}
	for _, pl := range list {
		p.attach(p.clone(work.value(), pl.from, pl.flags, false), root.value(), pl.at[1:])
	}
}

// files lays the run's files out, in their file system, which gets its size.
func (p *program) files(o order) {
	p.stage = stageFiles
	skillBytes, skillInodes := blocks(o.skill)
	inputBytes, inputInodes := blocks(o.inputs)
	p.resize(skillDir, "size", strconv.FormatInt(skillBytes+inputBytes+o.space, 10), "nr_inodes", strconv.Itoa(skillInodes+inputInodes+maxInodes))
	for _, tree := range []struct {
		dir   string
		files bundle.Bundle
	}{{skillDir + "/", o.skill}, {inputsDir + "/", o.inputs}} {
		for _, d := range folders(tree.files) {
			p.mkdir(atCwd, tree.dir+d, 0o700)
		}
		for _, f := range tree.files.Paths() {
			text, _, _ := tree.files.Text(f)
			p.file(atCwd, tree.dir+f, p.blob(text), len(text), 0o700)
		}
	}
	p.call(unix.SYS_UTIMENSAT, atCwd, p.text(shmDir), number(0), number(0)) // its time is that of the laying out
}
