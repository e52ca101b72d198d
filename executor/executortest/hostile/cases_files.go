//go:build linux

package hostile

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/tracon-go/tracon/gate"
)

const (
	otherHosts = "not every host has it"
	byAnother  = "a host may forbid it to everybody"
	closedNS   = "a host may forbid namespaces to its users"
	oneDisk    = "the folders may lie on two file systems"
)

// onHost holds for a path that leads somewhere on the host: some folder above it
// stands there too.
func onHost(_ *trial, s said) bool {
	for d := filepath.Dir(s.detail); len(d) > 1 && d != os.TempDir(); d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			return true
		}
	}
	return false
}

func fileCases() []testCase {
	return []testCase{
		{id: "F01", title: "reads files of the host", class: "A3/HostLeak", wall: Files, tries: all(
			showing(inFile, "file"), showing(inKey, "private file"),
			[]attempt{{name: "folder", check: func(_ *trial, s said) bool { return strings.Contains(s.detail, "canary.txt") }}},
			[]attempt{{name: "shadow", root: true, maybe: otherHosts}, {name: "home", root: true, maybe: otherHosts}},
			perhaps(otherHosts, "machine"))},
		{id: "F02", title: "reads and reaches what the control plane keeps", class: "A3/SecretLeak", wall: Files, tries: all(
			showing(inDatabase, "database"), showing(inKey, "signing key"), showing(inListener, "socket"), names("opened"))},
		{id: "F03", title: "lists the root and the mounts", class: "A3/HostLeak", wall: Files, tries: all(
			names("root", "var", "sys"), ofKernel(names("file systems of the kernel")), forRoot("folders of programs for writing"))},
		{id: "F04", title: "leaves by .., by links and by the links of /proc", class: "A3/HostLeak", wall: Files, tries: all(
			showing(inFile, "dots", "link in outputs", "root of itself", "folder of itself", "root of a process of the host", "folder of a process of the host"),
			of("py", showing(inFile, "link in the skill", "descriptor")),
			[]attempt{
				{name: "root of the parent", shows: inFile, only: "py", maybe: byAnother},
				{name: "root of process 1", shows: inFile, only: "py", root: true, maybe: "process 1 may have another root"},
			})},
		{id: "F05", title: "changes its root twice, with a folder kept open", class: "A3/Escape", wall: Kernel,
			tries: []attempt{{name: "twice", shows: inFile, root: true}, {name: "chroot", root: true}}},
		{id: "F06", title: "writes where the host's files and programs are", class: "A3/HostTamper", wall: Files, tries: all(
			names("file", "new file", "removal"),
			of("py", all(forRoot("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/bin", "/lib"), []attempt{{name: "/dev", root: true, maybe: byAnother}})))},
		{id: "F07", title: "makes and opens devices", class: "A3/Escape", wall: Files, tries: all(
			forRoot("character device", "block device"),
			ofKernel(perhaps(otherHosts, "/dev/fuse", "/dev/net/tun", "/dev/ptmx")),
			perhaps(otherHosts, "/dev/kmsg", "/dev/loop-control", "/dev/mem", "/dev/kvm", "/dev/console", "/dev/btrfs-control", "/dev/hwrng", "/dev/vsock", "/dev/uinput"))},
		{id: "F09", title: "starts a program that it wrote, outside the skill's folder", class: "A3/Escape", wall: Files, numbers: []string{"memfd_create"}, tries: all(
			names("outputs", "temporary folder", "home", "through the loader"),
			perhaps("a host may forbid programs in memory", "shared memory", "memory"))},
		{id: "F10", title: "mounts file systems", class: "A3/Escape", wall: Kernel, numbers: []string{"unshare", "fsopen", "open_tree"}, tries: all(
			perhaps(closedNS, "tmpfs", "bind", "new interface", "tree"))},
		{id: "F11", title: "gives files of the host a second name, or moves them", class: "A3/HostTamper", wall: Files, tries: []attempt{
			{name: "file of the host", shows: inFile, maybe: oneDisk}, {name: "file for writing", maybe: oneDisk}, {name: "moved", shows: inKey, maybe: oneDisk},
		}},
		{id: "F12", title: "empties, punches and marks a file of the host", class: "A3/HostTamper", wall: Files, tries: all(
			names("by path", "by opening", "mode", "times"), perhaps("the file system may have no holes", "hole"))},
		{id: "F13", title: "opens files by handles that it guessed", class: "A3/Escape", wall: Kernel, numbers: []string{"name_to_handle_at", "open_by_handle_at"},
			tries: []attempt{{name: "name", maybe: "the file system may have no handles"}, {name: "open", shows: inFile, root: true, maybe: "the file system may have no handles"}}},
		{id: "K20", title: "goes by other names of a folder, and makes programs of files", class: "A3/Escape", wall: Files, tries: names(
			"root by a descriptor", "root by its name in /proc", "root from below", "program by a descriptor", "program in memory", "program under another name")},
		{id: "F19", title: "learns the host's paths from those of its folder, its script and its temporary files", class: "A3/HostLeak", wall: Files, tries: []attempt{
			{name: "folder", check: onHost}, {name: "script", check: onHost}, {name: "temporary folder", check: onHost},
		}},
	}
}

// collectionCases are about what the host does with what a run left.
func collectionCases() []testCase {
	const collected = "in the outputs"
	laid := []string{"laid"}
	return []testCase{
		{id: "F16", title: "leaves names and folders that break a cleanup", class: "A3/Persist", wall: Collection, armed: laid, tries: judged("names"), judge: strangeNames},
		{id: "F17", title: "leaves links to the host's folders for whoever cleans up", class: "A3/HostTamper", wall: Collection, armed: laid, tries: judged("harm")},
		{id: "F24", title: "gives its outputs names that mean something elsewhere", class: "A3/HostTamper", wall: Collection, armed: laid, tries: judged("names"), judge: strangeNames},
		{id: "H01", title: "leaves links to the host's files among its outputs", class: "A3/HostLeak", wall: Collection, armed: laid, tries: judged(collected)},
		{id: "H02", title: "swaps a folder and a link while its outputs are collected", class: "A3/HostLeak", wall: Collection, numbers: []string{"renameat2"}, armed: laid, tries: judged(collected), play: race},
		{id: "H03", title: "leaves a second name of a file of the host", class: "A3/HostLeak", wall: Collection, armed: laid,
			tries: []attempt{{name: collected, judged: true, maybe: oneDisk}}},
		{id: "H04", title: "leaves fifos, sockets and devices among its outputs", class: "A3/HostDoS", wall: Collection, armed: laid, tries: judged("late", "strange files"), play: overdue, judge: func(_ *trial, f *findings) {
			for _, o := range f.result.Outputs {
				if o.Path != "fine" {
					f.through["strange files"] += o.Path + " "
				}
			}
		}},
		{id: "H05", title: "leaves a file of 1 TiB with nothing in it, and one that grows", class: "A3/HostDoS", wall: Collection, armed: laid, tries: judged("too much"),
			policy: func(p *gate.Policy) { p.MaxOutputs = 4 << 20 }, judge: func(k *trial, f *findings) {
				total := 0
				for _, o := range f.result.Outputs {
					total += len(o.Data)
				}
				if total > 4<<20 {
					f.through["too much"] = "the host took more than the policy allows"
				}
			}},
	}
}
