package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/image/oci"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) runtimeCmd() *cobra.Command {
	return group("runtime", "Root file systems that sandboxed scripts run in, in place of the host's programs",
		`  tracon runtime pull python-3.12 docker.io/library/python:3.12-slim
  tracon runtime import python-3.12 ./rootfs
  tracon runtime list`,
		a.runtimePullCmd(), a.runtimeImportCmd(), a.runtimeListCmd(), a.runtimeShowCmd(), a.runtimeRemoveCmd())
}

// importFlags are the words of an import.
type importFlags struct {
	reason            string
	replace           bool
	platform, image   string
	size              string
	entries, path, in int
}

func (f *importFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.replace, "replace", false, "take the name from another root file system")
	fs.StringVar(&f.reason, "reason", "", "why, for the log")
	fs.StringVar(&f.platform, "platform", "", "of an image for several, such as linux/arm64 (default linux and the processor of who keeps it)")
	fs.StringVar(&f.size, "max-size", "", "size of all files, such as 8GiB (default 4GiB)")
	fs.IntVar(&f.entries, "max-entries", 0, "files, folders and links (default 200000)")
	fs.IntVar(&f.path, "max-path", 0, "bytes of one path (default 1024)")
	fs.IntVar(&f.in, "max-depth", 0, "elements of one path (default 64)")
	_ = cmd.RegisterFlagCompletionFunc("platform", cobra.FixedCompletions([]string{"linux/amd64", "linux/arm64"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *importFlags) options() (o oci.Options, err error) {
	o.Name = f.image
	o.Limits = image.Limits{Entries: f.entries, PathBytes: f.path, Depth: f.in}
	if f.size != "" {
		if o.Limits.Bytes, err = config.ParseSize(f.size); err != nil {
			return o, fmt.Errorf("--max-size: %w", err)
		}
	}
	if f.platform != "" {
		if o.Platform, err = oci.ParsePlatform(f.platform); err != nil {
			return o, fmt.Errorf("--platform: %w", err)
		}
	}
	return o, nil
}

// limited says that limits are no server's affair; empty: there are none.
func limited(o oci.Options) string {
	if o.Limits != (image.Limits{}) {
		return "--max-… is for the data folder of this machine"
	}
	return ""
}

func (a *app) runtimeImportCmd() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import NAME SOURCE",
		Short: "Keep a root file system under a name: a folder, an archive, or - for one on standard input",
		Long: `Unpacks a root file system once into the data folder, under the digest of all that
is in it, and gives it the name. Nothing of it is run.

SOURCE is a folder or a tar archive, plain or compressed with gzip or zstd; - reads one
from standard input. Either holds a root file system, or a container image in layers: an
OCI layout, or what docker save writes. Of such an image PATH, LANG, LC_* and TZ are
taken where they say no more than they must; never its entrypoint, its user and its other
variables. --platform says which is meant of an image for several, --image which of
several images. The digest is the same however the files were packed.

Owners, set-user-id bits and extended attributes are dropped, devices, pipes and sockets
are left out and named, links keep their text and lead nowhere but inside. An archive is
refused whole when an entry leaves the root, lies below a link, or comes twice, and an
image when a part of it is not what its manifest says.

A name that belongs to another root file system is given to this one with --replace.
Interpreters of the allow-list stay in the old one until they are listed again.`,
		Example: `  tracon runtime import python-3.12 ./rootfs
  docker save python:3.12-slim | tracon runtime import python-3.12 -
  tracon runtime import tools ./layout --image tools:2 --platform linux/arm64
  tracon policy set --host --enabled --interpreters py=runtime:python-3.12`,
		Args: exactly("NAME", "SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			here := limited(o)
			if info, err := os.Stat(args[1]); err == nil && info.IsDir() {
				here = quoteWords(args[1]) + " is a folder of this machine, and a server takes a tar archive"
			} else if f.platform != "" || f.image != "" {
				here = "--platform and --image are for the data folder of this machine"
			}
			return a.naming(cmd, f, args[0], here, func(ctx context.Context, b backend, n admin.Naming) (daemon.Imported, error) {
				defer a.progress("importing " + harmless(n.Name, false)).during()()
				return a.importRuntime(ctx, b, n, args[1], o)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.image, "image", "", "which of several images in SOURCE")
	return cmd
}

// naming calls load for a runtime that gets the name, and says what came of it.
func (a *app) naming(cmd *cobra.Command, f importFlags, name, here string, load func(context.Context, backend, admin.Naming) (daemon.Imported, error)) error {
	return a.atHere(cmd, daemon.Make, here, func(ctx context.Context, b backend) error {
		n := admin.Naming{Name: name, Replace: f.replace, Reason: f.reason}
		out, err := load(ctx, b, n)
		if errors.Is(err, admin.ErrNamed) {
			return hint(err, "--replace gives the name to this one; `tracon runtime show %s` shows the other", n.Name)
		}
		if err != nil {
			return err
		}
		return a.toldImport(b, out)
	})
}

func (a *app) importRuntime(ctx context.Context, b backend, n admin.Naming, source string, o oci.Options) (daemon.Imported, error) {
	if source == "-" {
		return b.ImportRuntime(ctx, n, "", a.in, o)
	}
	file, err := os.Open(source)
	if err != nil {
		return daemon.Imported{}, hint(err, "name a folder, a tar archive, or - for one on standard input")
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.IsDir() {
		return b.ImportRuntime(ctx, n, source, nil, o)
	}
	return b.ImportRuntime(ctx, n, "", file, o)
}

func (a *app) toldImport(b backend, out daemon.Imported) error {
	for _, s := range out.Skipped {
		a.say("left out %s", s)
	}
	if more := out.Left - len(out.Skipped); more > 0 {
		a.say("left out %d more", more)
	}
	if a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.out, "%s is %s: %s\n", out.Name, out.Digest, contents(out.Runtime))
	if out.Source != "" {
		a.say("it came from %s", harmless(out.Source, false))
	}
	for _, v := range variables(out.Runtime) {
		a.say("what runs in it sees %s", harmless(v, false))
	}
	if len(out.Older) > 0 {
		a.say("%s still runs in %s; list it again to move it on", strings.Join(out.Older, ", "), out.Before)
	}
	if len(out.UsedBy) == 0 {
		a.say("to run scripts in it, list it%s", b.ListHint(out.Name))
	}
	return nil
}

func contents(r daemon.Runtime) string {
	if r.Info == nil {
		return r.Amiss
	}
	return fmt.Sprintf("%d files, %d folders, %d links, %s", r.Info.Files, r.Info.Folders, r.Info.Links, megabytes(r.Info.Bytes))
}

// variables are those that a runtime sets, each NAME=VALUE.
func variables(r daemon.Runtime) (list []string) {
	if r.Info != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Info.Environment)) {
			list = append(list, name+"="+r.Info.Environment[name])
		}
	}
	return list
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func (a *app) runtimeListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the runtimes, and which interpreters of the allow-list lie in them",
		Example: `  tracon runtime list
  tracon runtime list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.at(cmd, daemon.List, func(ctx context.Context, b backend) error {
				list, err := b.Runtimes(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(list)
				}
				rows := [][]string{{"NAME", "DIGEST", "RUNS", "HOLDS"}}
				for _, r := range list {
					rows = append(rows, []string{r.Name, r.Digest.String(), orNone(strings.Join(r.UsedBy, ",")), contents(r)})
				}
				return a.table(rows)
			})
		},
	}
}

func (a *app) runtimeShowCmd() *cobra.Command {
	var verify bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a runtime; --verify reads all of it and compares it with its digest",
		Example: `  tracon runtime show python-3.12
  tracon runtime show python-3.12 --verify`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeRuntime,
		RunE: func(cmd *cobra.Command, args []string) error {
			here := ""
			if verify {
				here = "--verify is for the data folder of this machine"
			}
			return a.atHere(cmd, daemon.List, here, func(ctx context.Context, b backend) error {
				stop := func() {}
				if verify {
					stop = a.progress("verifying " + harmless(args[0], false)).during()
				}
				r, err := b.Runtime(ctx, args[0], verify)
				stop()
				if err != nil {
					return hintRuntime(err)
				}
				var exit error
				if r.Amiss != "" {
					exit = hint(errors.New(r.Amiss), "end what runs in it, and `tracon runtime import %s SOURCE` with the same source again: that puts it in its place", r.Name)
				}
				if a.json {
					return errors.Join(a.printJSON(r), exit)
				}
				rows := [][]string{{"name", r.Name}, {"digest", r.Digest.String()}, {"runs", orNone(strings.Join(r.UsedBy, ","))}}
				if len(r.Older) > 0 {
					rows = append(rows, []string{"was left by", strings.Join(r.Older, ",") + ", which run in what had the name before"})
				}
				if r.Source != "" {
					rows = append(rows, []string{"came from", r.Source})
				}
				if r.Info != nil {
					rows = append(rows, []string{"holds", contents(r)})
				}
				if v := variables(r); len(v) > 0 {
					rows = append(rows, []string{"files", r.Info.Tree.String() + ", by themselves"}, []string{"sets", strings.Join(v, ", ")})
				}
				if verify && exit == nil {
					rows = append(rows, []string{"verified", "every byte is what was imported"})
				}
				return errors.Join(a.pairs(rows), exit)
			})
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "read all of it and compare it with its digest; exits 1 where it differs")
	return cmd
}

func (a *app) runtimeRemoveCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Take a runtime's name away, and its files where nobody needs them",
		Long: `Takes the name away and removes the files that no name and no allow-list needs any
more. It is refused while an interpreter of the allow-list lies in the runtime.`,
		Example:           `  tracon runtime remove python-3.11 --reason "end of life"`,
		Args:              exactly("NAME"),
		ValidArgsFunction: a.completeRuntime,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd, daemon.Make, func(ctx context.Context, b backend) error {
				d, kept, err := b.RemoveRuntime(ctx, args[0], reason)
				if errors.Is(err, admin.ErrListed) {
					return hint(err, "list another interpreter in its place first: `tracon policy set --host --interpreters …`, or the configuration file")
				}
				if err != nil {
					return hintRuntime(err)
				}
				if a.json {
					return a.printJSON(map[string]any{"name": args[0], "digest": d, "filesKept": kept})
				}
				fmt.Fprintf(a.out, "removed %s (%s)\n", args[0], d)
				if kept {
					a.say("its files stay while another name or a running program needs them; a later removal takes them")
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log")
	return cmd
}

// hintRuntime adds to the error for an unknown runtime where the known ones are.
func hintRuntime(err error) error {
	if errors.Is(err, grant.ErrNotFound) {
		return hint(err, "`tracon runtime list` lists the runtimes")
	}
	return err
}

// completeRuntime completes NAME with the runtimes.
func (a *app) completeRuntime(cmd *cobra.Command, args []string, _ string) (words []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		a.quietly(cmd, nil, func(ctx context.Context, b backend) {
			list, _ := b.Runtimes(ctx)
			for _, r := range list {
				words = append(words, r.Name+"\t"+r.Digest.String())
			}
		})
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
