package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

func (a *app) microvmCmd() *cobra.Command {
	return group("microvm", "What the executor microvm starts virtual machines from",
		`  tracon microvm prepare --package linux-image-6.1.0-57-cloud-amd64_6.1.192-3_amd64.deb
  tracon microvm show`,
		a.microvmPrepareCmd(), a.microvmShowCmd())
}

func (a *app) microvmPrepareCmd() *cobra.Command {
	var from daemon.KernelSource
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make the kernel, the first file system and the disks of virtual machines",
		Long: `Makes what the executor microvm starts machines from, in the data folder: a kernel,
a first file system with this program's agent, and a disk for each runtime that has a
name or is on the allow-list. Nothing of it is run. A disk that is there is not made
again, and one that no runtime needs goes.

The kernel comes from a Debian package (--package), which is unpacked by dpkg-deb and
never installed, or from its file and the folder of its modules (--kernel, --modules).
It must be one for x86-64 with the entry of PVH, unpacked or packed with LZ4, as
Debian's kernels for clouds are. Without any of them the kernel that is there stays, and
only the disks are made: do that after each import of a runtime.

Disks are made by mksquashfs (Debian: squashfs-tools). A process that serves takes up
what was made when it is started again.`,
		Example: `  apt-get download linux-image-6.1.0-57-cloud-amd64
  tracon microvm prepare --package linux-image-6.1.0-57-cloud-amd64_6.1.192-3_amd64.deb
  tracon microvm prepare --kernel /boot/vmlinuz-6.1.0-57-cloud-amd64 --modules /lib/modules/6.1.0-57-cloud-amd64
  tracon microvm prepare`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from.Package != "" && (from.Kernel != "" || from.Modules != "") || (from.Kernel == "") != (from.Modules == "") {
				return errors.New("name a package (--package), or a kernel and its modules (--kernel and --modules)")
			}
			return a.atKit(cmd, daemon.Make, func(ctx context.Context, h *daemon.House) (daemon.Machines, error) {
				stop := func() {}
				out, err := h.PrepareMachines(ctx, from, func(what string) {
					stop()
					stop = a.progress("making " + what).during()
				})
				stop()
				return out, err
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&from.Package, "package", "", "Debian package of a kernel")
	fs.StringVar(&from.Kernel, "kernel", "", "file of a kernel, such as /boot/vmlinuz-…")
	fs.StringVar(&from.Modules, "modules", "", "folder of its modules, such as /lib/modules/…")
	return cmd
}

func (a *app) microvmShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show what virtual machines are started from; each file is held against its digest",
		Long: `Shows what the executor microvm starts machines from, and the machines that it saved and
restores those of runs of: each with its memory, and the digest of all that it was made
with. A saved machine is made by the first run that needs it. One that is not what was
saved is refused and made anew. After a change of the kernel, the agent, a runtime or QEMU
another one is made, and the old one goes where there is no room or nobody has used it for
30 days. Whether machines can be restored on this host, tracon doctor says.`,
		Example: `  tracon microvm show
  tracon microvm show --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.atKit(cmd, daemon.List, func(ctx context.Context, h *daemon.House) (daemon.Machines, error) { return h.Machines(ctx) })
		},
	}
}

// atKit does f in the data folder of this machine, and shows what came of it.
func (a *app) atKit(cmd *cobra.Command, use daemon.Use, f func(context.Context, *daemon.House) (daemon.Machines, error)) error {
	return a.houseTo(cmd, use, func(ctx context.Context, h *daemon.House) error {
		m, err := f(ctx, h)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(m)
		}
		rows := [][]string{{"WHAT", "DIGEST"}, {"kernel", m.Kernel.String()}, {"first file system", m.Initrd.String()}, {"agent", m.Agent.String()}}
		for _, d := range m.Disks {
			rows = append(rows, []string{fmt.Sprintf("disk of runtime %s", orNone(d.Name)), d.Runtime.String()})
		}
		for _, s := range m.Saved {
			what := fmt.Sprintf("saved machine of %s, %d MiB on the disk, used %s", config.FormatSize(s.Memory), s.Bytes>>20, s.Used.Format(time.RFC3339))
			if s.Amiss != "" {
				what = "saved machine, to be made anew: " + withoutRoom(s.Amiss)
			}
			rows = append(rows, []string{what, s.Key.String()})
		}
		if m.Boot {
			rows = append(rows, []string{"no machine is restored of a saved one (microvm_boot)", ""})
		}
		return a.table(rows)
	})
}
