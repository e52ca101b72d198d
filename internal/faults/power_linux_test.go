package faults_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/daemon"
)

// traced are the calls that change what is on a disk; those with a question mark are
// not there on each processor.
const traced = "openat,write,pwrite64,ftruncate,fsync,fdatasync,renameat2,unlinkat,mkdirat,linkat,lseek," +
	"?open,?creat,?rename,?renameat,?unlink,?rmdir,?mkdir,?link,?truncate"

// A call is one line of a trace: its name, its arguments, and what it returned.
type call struct {
	name, result string
	args         []string
}

var (
	lineForm  = regexp.MustCompile(`^(\d+) +(.*)$`)
	callForm  = regexp.MustCompile(`^(\w+)\((.*)\) += (-?\d+.*)$`)
	wholeForm = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?|[^,]+`)
)

// calls reads a trace; what was broken off is put together where it goes on.
func calls(path string) (list []call, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	begun := map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		m := lineForm.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("the line %q", lines.Text())
		}
		text := m[2]
		if first, ok := strings.CutSuffix(text, " <unfinished ...>"); ok {
			begun[m[1]] = first
			continue
		}
		if _, rest, ok := strings.Cut(text, " resumed>"); ok && strings.HasPrefix(text, "<... ") {
			text = begun[m[1]] + rest
		}
		c := callForm.FindStringSubmatch(text)
		if c == nil || strings.HasPrefix(c[3], "-1") {
			continue // a signal, an end, a call that failed
		}
		one := call{name: c[1], result: c[3]}
		for _, a := range wholeForm.FindAllString(c[2], -1) {
			one.args = append(one.args, strings.TrimSpace(a))
		}
		list = append(list, one)
	}
	return list, lines.Err()
}

// text is the string that an argument is.
func text(arg string) (string, error) {
	if !strings.HasPrefix(arg, `"`) || !strings.HasSuffix(arg, `"`) {
		return "", fmt.Errorf("the argument %q is no whole text", arg)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Trim(arg, `"`), `\x`, ""))
	return string(b), err
}

// file is the path that strace shows behind a descriptor.
func file(arg string) string {
	_, path, ok := strings.Cut(arg, "<")
	if !ok {
		return ""
	}
	path, _, _ = strings.Cut(path, ">")
	b, err := hex.DecodeString(strings.ReplaceAll(path, `\x`, ""))
	if err != nil {
		return path // not a file: pipe:[1]
	}
	return string(b)
}

// A replay applies a trace to a disk, as far as it is about a folder.
type replay struct {
	*disk
	folder string
	at     map[string]int64 // where the next write of an open file goes
}

func (r *replay) ours(path string) bool {
	return (path == r.folder || strings.HasPrefix(path, r.folder+"/")) && !volatile(path)
}

// under is the path that a call means by a folder's descriptor and a name.
func under(dir, name string) (string, error) {
	s, err := text(name)
	if err != nil || strings.HasPrefix(s, "/") {
		return filepath.Clean(s), err
	}
	return filepath.Join(file(dir), s), nil
}

// paths are the paths that a call names, whether with descriptors of folders or without.
func (c call) paths() (all []string, err error) {
	dir := "<>"
	for _, a := range c.args {
		if !strings.HasPrefix(a, `"`) {
			dir = a
			continue
		}
		p, err := under(dir, a)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// apply does what c did, and reports whether it did something to the disk.
func (r *replay) apply(c call) (bool, error) {
	switch c.name {
	case "openat", "open", "creat":
		return r.open(c)
	case "write", "pwrite64":
		path := file(c.args[0])
		n := r.now[path]
		if n == nil || !r.ours(path) {
			return false, nil
		}
		data, err := text(c.args[1])
		if err != nil {
			return false, err
		}
		wrote, err := strconv.Atoi(strings.Fields(c.result)[0])
		if err != nil {
			return false, err
		}
		at := r.at[c.args[0]]
		if c.name == "pwrite64" {
			if at, err = strconv.ParseInt(c.args[3], 0, 64); err != nil {
				return false, err
			}
		} else {
			r.at[c.args[0]] += int64(wrote)
		}
		n.write(writing{at: at, data: []byte(data)[:wrote]})
		return true, nil
	case "lseek":
		at, err := strconv.ParseInt(strings.Fields(c.result)[0], 0, 64)
		r.at[c.args[0]] = at
		return false, err
	case "ftruncate":
		n := r.now[file(c.args[0])]
		if n == nil || !r.ours(file(c.args[0])) {
			return false, nil
		}
		at, err := strconv.ParseInt(c.args[1], 0, 64)
		n.write(writing{at: at, cuts: true})
		return true, err
	case "fsync", "fdatasync":
		if !r.ours(file(c.args[0])) {
			return false, nil
		}
		r.flush(file(c.args[0]))
		return true, nil
	}
	paths, err := c.paths()
	if err != nil || len(paths) == 0 || !slices.ContainsFunc(paths, r.ours) {
		return false, err
	}
	switch c.name {
	case "mkdir", "mkdirat":
		r.name(map[string]*node{paths[0]: {dir: true, mode: 0o700}})
	case "unlink", "unlinkat", "rmdir":
		if r.now[paths[0]] == nil {
			return false, nil // not of those that are looked at
		}
		r.name(map[string]*node{paths[0]: nil})
	case "rename", "renameat", "renameat2":
		if filepath.Dir(paths[0]) != filepath.Dir(paths[1]) || r.now[paths[0]] == nil || r.now[paths[0]].dir {
			return false, fmt.Errorf("a renaming that the replay does not know: %q", paths)
		}
		r.name(map[string]*node{paths[0]: nil, paths[1]: r.now[paths[0]]})
	default:
		return false, fmt.Errorf("a call that the replay does not know: %s of %q", c.name, paths)
	}
	return true, nil
}

func (r *replay) open(c call) (bool, error) {
	fd, _, _ := strings.Cut(c.result, " ")
	path := file(fd)
	flags := strings.Join(c.args, " ")
	if !r.ours(path) || strings.Contains(flags, "O_DIRECTORY") {
		return false, nil
	}
	n := r.now[path]
	if n == nil && !strings.Contains(flags, "O_CREAT") {
		return false, nil // a file that has lost its name, or a folder
	}
	changed := false
	if n == nil {
		n = &node{mode: 0o600}
		r.name(map[string]*node{path: n})
		changed = true
	}
	if strings.Contains(flags, "O_TRUNC") && len(n.now) > 0 {
		n.write(writing{cuts: true})
		changed = true
	}
	r.at[fd] = 0
	if strings.Contains(flags, "O_APPEND") {
		r.at[fd] = int64(len(n.now))
	}
	return changed, nil
}

// TestPowerLoss: I1 to I9, case 57. What a verb changes on the disk is recorded, and at
// each moment the power fails: what was not flushed is lost, or there in part. The next
// process finds what was acknowledged, whole, and nothing that is half. What a killed
// process leaves shows none of this, since the kernel keeps what it wrote.
func TestPowerLoss(t *testing.T) {
	strace := need(t, "strace")
	began := time.Now()
	var total row
	for i, st := range powerSteps(t) {
		if testing.Short() && i != 1 {
			continue // the run alone
		}
		r := &row{}
		powerLoss(t, strace, st.site, st.step, r)
		t.Logf("%-22s %6d states, %6d acknowledged before, %d violations", st.name, r.explored.Load(), r.acked.Load(), r.violations.Load())
		total.explored.Add(r.explored.Load())
		total.violations.Add(r.violations.Load())
		if r.explored.Load() == 0 || r.acked.Load() == 0 {
			t.Errorf("%s: the replay shows nothing", st.name)
		}
	}
	t.Logf("all: %d states, violations: %d, in %s", total.explored.Load(), total.violations.Load(), time.Since(began).Round(time.Second))
}

type sited struct {
	site
	step
}

// powerSteps are the steps of the sweep, and those that change files of our own.
func powerSteps(t *testing.T) (all []sited) {
	fresh := newSite(t)
	if err := os.Mkdir(filepath.Join(fresh.dir, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	nothing := func(*daemon.House, []byte) error { return nil }
	all = append(all, sited{fresh, step{"the first run", []string{"run", "--grant", "x", "a.sh", "--args", "PROOF"}, func(h *daemon.House, _ []byte) error {
		_, admissions, err := leaves(h)
		if err == nil && admissions != 1 {
			err = fmt.Errorf("%d calls were admitted", admissions)
		}
		return err
	}}})
	s, steps := base(t)
	for _, st := range steps {
		all = append(all, sited{s.copy(t), st})
	}
	all = append(all, sited{s.copy(t), step{"audit rotate-key", []string{"audit", "rotate-key"}, func(h *daemon.House, _ []byte) error {
		for leaf, err := range h.Log.Entries(context.Background(), "", 0) {
			if err != nil {
				return err
			}
			if leaf.Entry.Fact(audit.FactRotation) != "" {
				return nil
			}
		}
		return errors.New("the log knows of no new key")
	}}}, sited{s.copy(t), step{"audit checkpoint", []string{"audit", "checkpoint"}, nothing}})
	return all
}

func powerLoss(t *testing.T, strace string, s site, st step, r *row) {
	home := filepath.Join(s.dir, "home")
	w := &sweep{T: t, base: s}
	d, err := diskOf(home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.data()); err == nil {
		h, err := s.open(t)
		if err != nil {
			t.Fatal(err)
		}
		w.log, w.admissions, err = leaves(h)
		if err := errors.Join(err, h.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := lay(home, d.after(loss{"", all, now})); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(st.args)
	if i := slices.Index(args, "PROOF"); i >= 0 {
		args[i] = `["` + s.proof() + `"]`
	}
	trace := filepath.Join(s.dir, "trace")
	c := s.command(t.Context(), []string{strace, "-f", "-qq", "-y", "-xx", "-s", "16777216", "-o", trace, "-e", "trace=" + traced, "-e", "signal=none"}, args...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", st.name, err, &stderr)
	}
	list, err := calls(trace)
	if err != nil {
		t.Fatal(err)
	}
	play := &replay{d, home, map[string]int64{}}
	var answer int // the last of what it printed
	for i, c := range list {
		if c.name == "write" && strings.HasPrefix(c.args[0], "1<") && strings.HasPrefix(file(c.args[0]), "pipe:") {
			answer = i
		}
	}
	ran := 0
	for moment, c := range list {
		acked := answer > 0 && moment >= answer
		if c.name == "write" && file(c.args[0]) == s.proof() {
			ran++
		}
		changed, err := play.apply(c)
		if err != nil {
			t.Fatalf("%s: %v", st.name, err)
		}
		if moment != answer && (!changed || !full() && moment%29 != 0) {
			continue
		}
		for _, l := range losses(uint64(moment)) {
			if err := errors.Join(lay(home, d.after(l)), os.WriteFile(s.proof(), []byte(strings.Repeat("ran\n", ran)), 0o600)); err != nil {
				t.Fatal(err)
			}
			r.explored.Add(1)
			if acked {
				r.acked.Add(1)
			}
			if why := w.violated(s, st, acked, out); why != "" {
				r.violations.Add(1)
				t.Errorf("%s, after call %d (%s %s), with %s: %s", st.name, moment, c.name, file(c.args[0]), l.name, why)
				return // it shows at other moments too
			}
		}
	}
}
