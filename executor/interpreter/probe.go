package interpreter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/image"
)

// ProbeTimeout is how long an interpreter may take to say what it is: 10 s. A
// version manager's shim on a cold disk took 1.4 s.
const ProbeTimeout = 10 * time.Second

// A Found is an interpreter of this host or in a runtime that is kept here, as it
// was when it was probed.
type Found struct {
	Extension string
	Kind      Kind
	Path      string        // absolute; what is started
	Version   string        // as the interpreter says, such as "3.11.2"; empty where it says nothing
	Digest    bundle.Digest // of the file that Path leads to
	Through   string        // the shim or wrapper that led to Path; empty for none
	Runtime   string        // the name of the runtime that Path is in; empty: this host's own
	Image     bundle.Digest // of that runtime
}

// Interpreter returns f as the entry of an allow-list.
func (f Found) Interpreter() gate.Interpreter {
	return gate.Interpreter{Path: f.Path, Name: f.Runtime, Digest: f.Digest, Image: f.Image}
}

// ErrNotAvailable is wrapped by every error for an interpreter that is missing
// or cannot be used.
var ErrNotAvailable = errors.New("interpreter not available")

// A NotAvailableError says which paths were tried and what was wrong with each.
type NotAvailableError struct {
	Extension string
	Tried     []Attempt // empty: there was no path to try
	Remedy    string    // what to install or to write
}

// An Attempt is a path that was tried and why it does not serve.
type Attempt struct {
	Path string
	Err  error
}

// Error names every path that was tried.
func (e *NotAvailableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v for .%s", ErrNotAvailable, e.Extension)
	for i, a := range e.Tried {
		fmt.Fprintf(&b, "%s %s: %v", map[bool]string{true: ": tried", false: ";"}[i == 0], a.Path, a.Err)
	}
	return b.String() + "; " + e.Remedy
}

// Unwrap returns ErrNotAvailable, executor.ErrUnavailable and what was wrong.
func (e *NotAvailableError) Unwrap() []error {
	errs := []error{ErrNotAvailable, executor.ErrUnavailable}
	for _, a := range e.Tried {
		errs = append(errs, a.Err)
	}
	return errs
}

// Probe runs the interpreter at path, which is absolute, to learn which
// executable it really is and its version, and hashes that file. A link is kept
// as it is, since Python finds the modules of a virtual environment by it; a
// shim or a wrapper is seen through. The interpreter gets an environment with
// PATH alone, at most [ProbeTimeout], and its output is bounded. One of a kind
// that is not known is not run, only looked at.
//
// # Errors
//
// A *NotAvailableError, which wraps ErrNotAvailable; the cause of ctx when it is
// done.
func Probe(ctx context.Context, extension, path string) (Found, error) {
	f, err := probe(ctx, extension, path)
	if ctx.Err() != nil {
		return Found{}, context.Cause(ctx)
	}
	if err != nil {
		return Found{}, &NotAvailableError{extension, []Attempt{{path, err}}, remedy(extension)}
	}
	return f, nil
}

func remedy(extension string) string {
	if rule, ok := extensions[extension]; ok {
		return "install " + rule.install + ", or name its path in the allow-list"
	}
	return "name the path of what runs it in the allow-list"
}

func probe(ctx context.Context, extension, path string) (Found, error) {
	if !filepath.IsAbs(path) {
		return Found{}, errors.New("it is not an absolute path")
	}
	f := Found{Extension: extension, Kind: KindOf(extension, path), Path: path}
	if f.Kind == Unknown {
		var err error
		f.Digest, err = hashExecutable(path)
		return f, err
	}
	for range 2 {
		told, version, err := ask(ctx, f.Kind, f.Path)
		if err != nil {
			return Found{}, err
		}
		f.Version = version
		if told == "" || sameFile(told, f.Path) {
			f.Digest, err = hashExecutable(f.Path)
			return f, err
		}
		if !filepath.IsAbs(told) {
			return Found{}, fmt.Errorf("it says that it is %q, which is no absolute path", told)
		}
		f.Path, f.Through = told, path
	}
	return Found{}, fmt.Errorf("it says that it is %s, and that says it is yet another", f.Path)
}

const marker = "tracon-interpreter"

// questions make an interpreter say the marker, its executable and its version,
// separated by tabs. A shell does not know its executable and leaves it empty.
var questions = map[Kind][]string{
	Python: {"-c", `import sys; sys.stdout.write("\t".join(["` + marker + `", sys.executable, ".".join(str(n) for n in sys.version_info[:3])]) + "\n")`},
	Node:   {"-e", `process.stdout.write(["` + marker + `", process.execPath, process.versions.node].join("\t") + "\n")`},
	Bash:   {"-c", `printf '` + marker + `\t\t%s\n' "${BASH_VERSION%%[!0-9.]*}"`},
	Sh:     {"-c", `printf '` + marker + `\t\t%s\n' "${BASH_VERSION%%[!0-9.]*}"`},
	Perl:   {"-e", `printf "` + marker + `\t%s\t%vd\n", $^X, $^V`},
	Ruby:   {"-e", `puts ["` + marker + `", RbConfig.ruby, RUBY_VERSION].join("\t")`},
}

// ask runs the interpreter with the options of a run, so that one that does not
// know them is found here and not in a run.
func ask(ctx context.Context, kind Kind, path string) (told, version string, err error) {
	if err := checkExecutable(path); err != nil {
		return "", "", err
	}
	if kind == Bash || kind == Sh {
		if script, err := isScript(path); err != nil || script {
			return "", "", errors.Join(err, errors.New("it is a script around the shell, which cannot be seen through"))
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ProbeTimeout, fmt.Errorf("it did not answer in %v", ProbeTimeout))
	defer cancel()
	ctx, flood := context.WithCancelCause(ctx)
	defer flood(nil)
	out := executor.NewCapture(8<<10, nil, func() { flood(errors.New("it does not stop writing")) })
	complaint := executor.NewCapture(512, nil, nil)
	cmd := exec.CommandContext(ctx, path, append(append([]string{}, options[kind]...), questions[kind]...)...)
	cmd.Env = []string{"PATH=" + SearchPath}
	cmd.Dir = string(filepath.Separator) // a version manager looks for its file upwards from here
	cmd.Stdout, cmd.Stderr = out, complaint
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	err = cmd.Run()
	killGroup(cmd)
	if err != nil && ctx.Err() != nil {
		return "", "", context.Cause(ctx)
	}
	if err != nil {
		said, _ := complaint.Bytes()
		return "", "", fmt.Errorf("it does not run: %w%s", err, quoted(said))
	}
	said, _ := out.Bytes()
	line, _, _ := strings.Cut(string(said), "\n")
	fields := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
	if len(fields) != 3 || fields[0] != marker {
		return "", "", fmt.Errorf("it does not answer as %s does%s", kind, quoted(said))
	}
	if kind == Python && !strings.HasPrefix(fields[2], "3.") {
		return "", "", fmt.Errorf("it is Python %s; scripts need Python 3", fields[2])
	}
	if kind != Bash && kind != Sh && fields[1] == "" {
		return "", "", errors.New("it does not know its own executable")
	}
	return fields[1], fields[2], nil
}

func quoted(said []byte) string {
	if len(said) == 0 {
		return ""
	}
	return fmt.Sprintf(" (it said %.200q)", said)
}

// SearchPath is the PATH of a probe and of a run: fixed, so that what a script
// calls does not depend on who started the host.
const SearchPath = image.SearchPath

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("there is no such file")
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}

func isScript(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return isScriptFile(f)
}

func isScriptFile(f *os.File) (bool, error) {
	var head [2]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && n < len(head) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(head[:n]) == "#!", nil
}

func sameFile(a, b string) bool {
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && os.SameFile(ia, ib)
}

// hashExecutable hashes what path leads to, which must be no script: a digest of
// a wrapper says nothing about what the wrapper starts.
func hashExecutable(path string) (bundle.Digest, error) {
	if err := checkExecutable(path); err != nil {
		return bundle.Digest{}, err
	}
	if script, err := isScript(path); err != nil || script {
		return bundle.Digest{}, errors.Join(err, errors.New("it is a script around an interpreter, which cannot be seen through"))
	}
	f, err := os.Open(path)
	if err != nil {
		return bundle.Digest{}, err
	}
	defer f.Close()
	return hash(f)
}

func hash(f *os.File) (d bundle.Digest, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return d, err
	}
	h.Sum(d[:0])
	return d, nil
}
