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

// A place is a folder of the run and how it is mounted.
type place struct {
	from  string // in the run's own file system
	at    string
	flags uint64
}

// places returns where the folders of a run are mounted. Inside the skill's
// folder, inputs/ and outputs/ are the same folders once more, unless the skill
// has such names itself.
func places(skill bundle.Bundle) []place {
	const closed = attrClosed | unix.MOUNT_ATTR_NOSYMFOLLOW
	list := []place{
		{"skill", skillDir, closed},
		{"inputs", inputsDir, closed | unix.MOUNT_ATTR_NOEXEC},
		{"outputs", outputsDir, closed | unix.MOUNT_ATTR_NOEXEC},
		{"tmp", tmpDir, closed | unix.MOUNT_ATTR_NOEXEC},
		{"shm", shmDir, closed | unix.MOUNT_ATTR_NOEXEC},
	}
	for _, name := range []string{"inputs", "outputs"} {
		if !has(skill, name) {
			list = append(list, place{name, skillDir + "/" + name, closed | unix.MOUNT_ATTR_NOEXEC})
		}
	}
	return list
}

// files lays the run's files out, in a file system of a fixed size.
func (s *setup) files(p *program, root variable, o order) {
	p.stage = stageFiles
	skillBytes, skillInodes := blocks(o.skill)
	inputBytes, inputInodes := blocks(o.inputs)
	work := p.filesystem("tmpfs", attrClosed, "mode", "0700",
		"size", strconv.FormatInt(skillBytes+inputBytes+o.space, 10), "nr_inodes", strconv.Itoa(skillInodes+inputInodes+maxInodes))
	// It must be somewhere to be shown in parts. Here it goes with the host's root: to
	// take it away by itself would cost a grace period of the kernel, 0.2 ms.
	p.attach(work, atCwd, "/dev")
	list := places(o.skill)
	for _, d := range []string{"skill", "inputs", "outputs", "tmp"} {
		p.mkdir(work, d, 0o700)
	}
	p.mkdir(work, "tmp/home", 0o700)
	for _, tree := range []struct {
		dir   string
		files bundle.Bundle
	}{{"skill/", o.skill}, {"inputs/", o.inputs}} {
		for _, d := range folders(tree.files) {
			p.mkdir(work, tree.dir+d, 0o700)
		}
		for _, f := range tree.files.Paths() {
			text, _, _ := tree.files.Text(f)
			p.file(work, tree.dir+f, p.blob(text), len(text), 0o700)
		}
	}
	for _, pl := range list {
		if name, ok := strings.CutPrefix(pl.at, skillDir+"/"); ok {
			p.mkdir(work, "skill/"+name, 0o700)
		}
	}
	p.mkdir(work, "shm", 0o700) // the last: its time is that of the laying out
	for _, pl := range list {
		p.attach(p.clone(work.value(), pl.from, pl.flags, false), root.value(), pl.at[1:])
	}
}
