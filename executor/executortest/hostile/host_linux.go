package hostile

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tracon-go/tracon/executor/executortest"
)

// A secret names a canary by what it holds.
type secret string

// The secrets. Each has 32 hex digits that nothing else has.
const (
	inFile        secret = "a file of the host"
	inKey         secret = "a private file of the host"
	inDatabase    secret = "the host's database"
	inListener    secret = "what the host's listeners say"
	inEnvironment secret = "a variable of the host"
	inProcess     secret = "a variable of a process of the host"
	inCommand     secret = "the command line of a process of the host"
	inKeyring     secret = "a key of the host"
	inMemory      secret = "memory that the host has open"
	inToken       secret = "what the other run knows" // of each run anew
)

// variable is the canary's name in the environment of the host and of its process.
const variable = "TRACON_CANARY"

// A host is what the canaries stand in.
type host struct {
	dir     string
	secrets map[secret]string
	words   map[string]string // what scripts are told
	reached atomic.Int64      // connections and packets that came
	visits  []func() error    // each reaches one listener, behind all that came before
	process *exec.Cmd
	ended   chan struct{} // closed: the process is gone
	files   map[string]string
	leaked  []int // descriptors that are open for whoever starts a program
}

// newSecret returns 32 hex digits.
func newSecret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// plant plants the canaries, below the folder. They are gone when the case is over.
func plant(t executortest.T, below string) *host {
	t.Helper()
	h := &host{secrets: map[secret]string{}, words: map[string]string{"tcp6": "0", "key_id": "0", "key_name": "tracon-none"}}
	for _, s := range []secret{inFile, inKey, inDatabase, inListener, inEnvironment, inProcess, inCommand, inKeyring, inMemory} {
		h.secrets[s] = newSecret()
	}
	for _, step := range []func(executortest.T, string) error{h.plantFiles, h.plantListeners, h.plantProcess, h.plantEnvironment} {
		if err := step(t, below); err != nil {
			t.Fatalf("hostile: planting canaries: %v", err)
		}
	}
	h.plantKey(t)
	h.words["host"] = strconv.Itoa(os.Getpid())
	var err error
	if h.files, err = h.look(); err != nil {
		t.Fatalf("hostile: planting canaries: %v", err)
	}
	return h
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) plantFiles(t executortest.T, below string) error {
	dir, err := folder(t, below)
	if err != nil {
		return err
	}
	h.dir, h.files = dir, map[string]string{}
	for name, path := range map[string]string{"file": "canary.txt", "key": "signing.key", "database": "tracon.db", "open": "unchanged.txt"} {
		h.words[name] = h.path(path)
	}
	h.words["folder"], h.words["writable"], h.words["socket"] = dir, h.path("writable"), h.path("control.sock")
	if len(h.words["socket"]) > longestSocket {
		if dir, err = folder(t, "/tmp"); err != nil {
			return err
		}
		h.words["socket"] = filepath.Join(dir, "control.sock")
	}
	return h.layFiles()
}

// longestSocket is how long the path of a socket may be (sun_path of unix(7), with
// its end).
const longestSocket = 107

// folder makes a folder that is gone when the case is over.
func folder(t executortest.T, below string) (string, error) {
	dir, err := os.MkdirTemp(below, "tracon-canary-")
	if err != nil {
		return "", err
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("hostile: %v", err)
		}
	})
	return dir, os.Chmod(dir, 0o755)
}

// layFiles makes the files as they must be.
func (h *host) layFiles() error {
	if err := errors.Join(os.Chmod(h.dir, 0o755), os.RemoveAll(h.words["writable"]), os.RemoveAll(h.words["open"]+"-moved")); err != nil {
		return err
	}
	for _, f := range []struct {
		path, text string
		mode       os.FileMode
	}{
		{h.words["file"], h.secrets[inFile] + "\n", 0o644},
		{h.words["key"], h.secrets[inKey] + "\n", 0o600},
		{h.words["database"], "SQLite format 3\x00" + h.secrets[inDatabase], 0o644},
		{h.words["open"], "nobody changes this\n", 0o666},
	} {
		if err := errors.Join(os.RemoveAll(f.path), os.WriteFile(f.path, []byte(f.text), f.mode), os.Chmod(f.path, f.mode)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir(h.words["writable"], 0o777), os.Chmod(h.words["writable"], 0o777)); err != nil {
		return err
	}
	var err error
	h.files, err = h.look()
	return err
}

// look returns what the canaries' folder holds.
func (h *host) look() (map[string]string, error) {
	seen := map[string]string{}
	return seen, filepath.Walk(h.dir, func(p string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		line := fmt.Sprint(info.Mode())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line = fmt.Sprint(line, info.ModTime().UnixNano(), info.Sys().(*syscall.Stat_t).Nlink, sha256.Sum256(b))
		}
		seen[strings.TrimPrefix(p, h.dir)] = line
		return nil
	})
}

func (h *host) plantListeners(t executortest.T, _ string) error {
	h.words["abstract"] = "tracon-canary-" + newSecret()
	serve := func(network, address string) (net.Addr, error) {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { l.Close() })
		secret := h.secrets[inListener] // a case may add others while it runs
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				h.reached.Add(1)
				_, _ = io.WriteString(c, secret+"\n")
				c.Close()
			}
		}()
		at := l.Addr()
		h.visits = append(h.visits, func() error { return h.visit(at) })
		return at, nil
	}
	tcp, err := serve("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.words["tcp4"] = strconv.Itoa(tcp.(*net.TCPAddr).Port)
	if tcp, err := serve("tcp6", "[::1]:0"); err == nil {
		h.words["tcp6"] = strconv.Itoa(tcp.(*net.TCPAddr).Port)
	}
	if _, err := serve("unix", h.words["socket"]); err != nil {
		return err
	}
	if err := os.Chmod(h.words["socket"], 0o777); err != nil {
		return err
	}
	if _, err := serve("unix", "@"+h.words["abstract"]); err != nil {
		return err
	}
	udp, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.Cleanup(func() { udp.Close() })
	h.words["udp4"] = strconv.Itoa(udp.LocalAddr().(*net.UDPAddr).Port)
	secret := h.secrets[inListener]
	go func() {
		b := make([]byte, 2048)
		for {
			_, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			h.reached.Add(1)
			_, _ = udp.WriteTo([]byte(secret), from)
		}
	}()
	h.visits = append(h.visits, func() error { return h.visit(udp.LocalAddr()) })
	return nil
}

// visit reaches a listener and waits for its answer.
func (h *host) visit(at net.Addr) error {
	c, err := net.DialTimeout(at.Network(), at.String(), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if at.Network() == "udp" {
		if _, err := c.Write([]byte("count")); err != nil {
			return err
		}
	}
	_, err = c.Read(make([]byte, 100))
	return err
}

// visitors returns how many connections and packets came since it was last asked.
// The listeners take them in turn: once they have answered the host, they have
// counted all that came before.
func (h *host) visitors() (int64, error) {
	for _, visit := range h.visits {
		if err := visit(); err != nil {
			return 0, err
		}
	}
	return h.reached.Swap(0) - int64(len(h.visits)), nil
}

func (h *host) plantProcess(t executortest.T, _ string) error {
	t.Cleanup(func() {
		if h.process != nil {
			_ = h.process.Process.Kill()
			<-h.ended
		}
	})
	return h.startProcess()
}

func (h *host) startProcess() error {
	path, err := exec.LookPath("cat") // it ends with whoever holds its input
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{Path: path, Dir: h.dir, Args: []string{"canary-" + h.secrets[inCommand]}, Env: []string{variable + "=" + h.secrets[inProcess]}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	h.process, h.ended = cmd, make(chan struct{})
	go func(ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(h.ended)
	h.words["pid"] = strconv.Itoa(cmd.Process.Pid)
	return nil
}

func (h *host) plantEnvironment(t executortest.T, _ string) error {
	before, was := os.LookupEnv(variable)
	t.Cleanup(func() {
		if was {
			_ = os.Setenv(variable, before)
		} else {
			_ = os.Unsetenv(variable)
		}
	})
	return os.Setenv(variable, h.secrets[inEnvironment])
}

// plantKey puts a key into the user's keyring. A kernel without keyrings has no
// such canary.
func (h *host) plantKey(t executortest.T) {
	name := "tracon-canary-" + newSecret()
	id, err := unix.AddKey("user", name, []byte(h.secrets[inKeyring]), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		t.Logf("no canary in a keyring: %v", err)
		return
	}
	const possessorAndUser = 0x3f3f0000
	_ = unix.KeyctlSetperm(id, possessorAndUser)
	t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	h.words["key_id"], h.words["key_name"] = strconv.Itoa(id), name
}

// leak opens a folder, a piece of memory and a connection in such a way that
// every program which is started inherits them, unless somebody cares.
func (h *host) leak() error {
	dir, err := unix.Open(h.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	h.leaked = append(h.leaked, dir)
	mem, err := unix.MemfdCreate("canary", 0)
	if err != nil {
		return err
	}
	h.leaked = append(h.leaked, mem)
	if _, err := unix.Write(mem, []byte(h.secrets[inMemory])); err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	unix.CloseOnExec(pair[1])
	h.leaked = append(h.leaked, pair[0], pair[1])
	return nil
}

// unleak closes what leak opened.
func (h *host) unleak() {
	for _, fd := range h.leaked {
		unix.Close(fd)
	}
	h.leaked = nil
}

// harm returns what became of the canaries since it was last called, and makes
// everything as it was.
func (h *host) harm() ([]string, error) {
	var harm []string
	n, err := h.visitors()
	if err != nil {
		return nil, err
	}
	if n > 0 {
		harm = append(harm, fmt.Sprintf("%d connections or packets reached the host's listeners", n))
	}
	if !h.unhurt() {
		harm = append(harm, "a process of the host was sent a signal")
		_ = h.process.Process.Kill()
		<-h.ended
		if err := h.startProcess(); err != nil {
			return harm, err
		}
	}
	now, err := h.look()
	if err != nil {
		return harm, err
	}
	changed := len(now) != len(h.files)
	for p, was := range h.files {
		if now[p] != was {
			harm, changed = append(harm, fmt.Sprintf("the host's %q was changed", p)), true
		}
	}
	if changed && len(harm) == 0 {
		harm = append(harm, "the host has new files")
	}
	if changed {
		return harm, h.layFiles()
	}
	return harm, nil
}

// unhurt reports whether the canary's process sleeps, and no signal is on its way.
func (h *host) unhurt() bool {
	status, err := os.ReadFile("/proc/" + h.words["pid"] + "/status")
	if err != nil {
		return false
	}
	quiet := 0
	for line := range strings.Lines(string(status)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t"); {
		case name == "State" && strings.ContainsAny(value[:1], "RSD"),
			(name == "SigPnd" || name == "ShdPnd") && strings.Trim(value, "0") == "":
			quiet++
		}
	}
	return quiet == 3
}

// found returns the secrets that the bytes hold.
func (h *host) found(b []byte) []secret {
	var list []secret
	for s, text := range h.secrets {
		if bytes.Contains(b, []byte(text)) {
			list = append(list, s)
		}
	}
	return list
}

// cached reads a file and returns how many of its pages are in memory then.
func cached(path string) (pages uint64, err error) {
	if _, err := os.ReadFile(path); err != nil {
		return 0, err
	}
	return stillCached(path)
}

func stillCached(path string) (pages uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var st unix.Cachestat_t
	err = unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &st, 0)
	return st.Cache, err
}

// survivors returns the processes on whose command line the word stands.
func survivors(word string) []int {
	var list []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if strings.Contains(commandLine(pid), word) {
			list = append(list, pid)
		}
	}
	return list
}

// commandLine returns the command line of a process, as that of any thread where
// the main one is gone.
func commandLine(pid int) string {
	dir := fmt.Sprintf("/proc/%d/", pid)
	line, err := os.ReadFile(dir + "cmdline")
	if err != nil || len(line) > 0 {
		return string(line)
	}
	threads, _ := os.ReadDir(dir + "task")
	for _, t := range threads {
		if line, _ := os.ReadFile(dir + "task/" + t.Name() + "/cmdline"); len(line) > 0 {
			return string(line)
		}
	}
	return ""
}

// end stops the processes on whose command line the word stands: those that a
// control left.
func end(word string) {
	for begin := time.Now(); time.Since(begin) < patience; {
		list := survivors(word)
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// own returns what the script would find of this process.
func own(path string) string {
	f, err := os.Open("/proc/self/" + path)
	if err != nil {
		return ""
	}
	defer f.Close()
	r := io.Reader(f)
	if path == "exe" {
		r = io.LimitReader(f, 65536)
	}
	s := sha256.New()
	if _, err := io.Copy(s, r); err != nil {
		return ""
	}
	return hex.EncodeToString(s.Sum(nil))
}

func isRoot() bool { return os.Geteuid() == 0 }
