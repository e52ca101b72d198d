//go:build linux

package hostile

import (
	"os"
	"strings"
)

const yama = "a host may let nobody look into processes that are not one's own children"

// ofHost holds for the digest of a file below /proc/self of this process.
func ofHost(path string) func(*trial, said) bool {
	return func(_ *trial, s said) bool { return s.outcome == "ok" && s.detail == own(path) }
}

func holds(text string) func(*trial, said) bool {
	return func(_ *trial, s said) bool { return s.outcome == "ok" && strings.Contains(s.detail, text) }
}

func processCases() []testCase {
	return []testCase{
		{id: "X01", title: "looks for what the host has open, and left open for it", class: "A3/HostLeak", wall: Descriptors, play: leaking, tries: all(
			names("others"), of("py", all(showing(inFile, "folder"), showing(inMemory, "memory"), names("connection"))))},
		{id: "X03", title: "reads what /proc tells of the host's processes", class: "A3/SecretLeak", wall: Processes, tries: all(
			showing(inProcess, "environment"), showing(inCommand, "command line"), names("memory map", "descriptors"),
			of("py", all(
				showing(inProcess, "environment of a thread"), names("auxiliary vector", "folder", "other processes"),
				[]attempt{
					{name: "memory", shows: inProcess, maybe: yama},
					{name: "environment of the parent", check: ofHost("environ"), maybe: byAnother},
					{name: "environment of the host", check: ofHost("environ"), maybe: byAnother},
					{name: "process 1", maybe: byAnother, own: true},
				})))},
		{id: "X04", title: "reads its environment, and its children's", class: "A3/SecretLeak", wall: Environment, tries: all(
			names("variables"), showing(inEnvironment, "canary"), of("py", all(names("at the start"), showing(inEnvironment, "in a child"))))},
		{id: "X07", title: "looks which rights it has", class: "A3/Escape", wall: Privileges, tries: all(
			names("CapBnd", "new privileges", "no filter"), ofKernel(names("identities of the host")), forRoot("CapPrm", "CapEff", "root"),
			perhaps("nobody gives such rights", "CapInh", "CapAmb", "groups"))},
		{id: "X09", title: "asks for rights and for tracers", class: "A3/Escape", wall: Kernel, tries: all(
			names("dumpable", "kept capabilities"), perhaps(otherHosts, "any tracer", "memory map", "ambient"))},
		{id: "X10", title: "sends signals to the host's processes", class: "A3/HostDoS", wall: Processes, numbers: []string{"pidfd_open", "pidfd_send_signal"}, tries: all(
			names("asking", "the host", "stopping"), of("py", all(ofKernel(names("everybody")), names("its group", "descriptor"))))},
		{id: "X11", title: "traces and reads other processes", class: "A3/Escape", wall: Kernel, numbers: []string{"ptrace", "process_vm_readv", "kcmp"}, tries: all(
			names("child", "memory of a child"), perhaps(yama, "process of the host"), perhaps(builtOut, "comparing"))},
		{id: "X12", title: "connects to the host's unix sockets", class: "A3/Escape", wall: Network, tries: all(
			showing(inListener, "path", "abstract"),
			perhaps(otherHosts, "/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private", "/run/dbus/system_bus_socket", "/run/podman/podman.sock", "/tmp/.X11-unix/X0"))},
		{id: "X14", title: "makes and enters user namespaces", class: "A3/Escape", wall: Kernel, numbers: []string{"unshare", "clone", "clone3", "setns"}, armed: []string{"threads"}, tries: all(
			perhaps(closedNS, "unshare", "clone", "clone3"), forRoot("entering the network of the host", "entering the mounts of the host"))},
		{id: "X26", title: "opens terminals", class: "A3/HostTamper", wall: Files, tries: all(
			ofKernel(names("new terminal")), perhaps("the host may have none", "terminal", "is a terminal"), []attempt{{name: "console", root: true, maybe: otherHosts}})},
		{id: "H09", title: "reads and changes the host's own program", class: "A3/HostTamper", wall: Processes, tries: all(
			[]attempt{{name: "program of the host", check: ofHost("exe")}, {name: "program of the parent", check: ofHost("exe")}, {name: "program of process 1", root: true, maybe: byAnother}},
			perhaps("a program that runs cannot be written", "writing the parent", "writing process 1", "writing itself"))},
	}
}

// endingCases are about processes that want to outlive their run.
func endingCases() []testCase {
	laid := []string{"laid"}
	return []testCase{
		{id: "X15", title: "leaves a process in a session of its own and ends", class: "A3/Persist", wall: Cleanup, armed: laid, tries: judged("survivors")},
		{id: "X16", title: "leaves a process that keeps its output open", class: "A3/HostDoS", wall: Cleanup, armed: laid, tries: judged("late"), play: overdue},
		{id: "X17", title: "ignores and blocks every signal", class: "A3/HostDoS", wall: Cleanup, armed: laid, ends: timedOut, tries: judged("late"), play: expiring},
		{id: "X22", title: "goes on in a thread when its main thread is gone", class: "A3/HostDoS", wall: Cleanup, numbers: []string{"exit"}, armed: laid, ends: timedOut, tries: judged("late"), play: expiring},
		{id: "X19", title: "stops itself", class: "A3/HostDoS", wall: Cleanup, armed: laid, ends: timedOut, tries: judged("late"), play: expiring},
	}
}

// runCases are about two runs.
func runCases() []testCase {
	token := func(list ...string) []attempt { return showing(inToken, list...) }
	return []testCase{
		{id: "U01", title: "passes a token to another tenant's run by files, queues and sockets", class: "A3/Lateral", wall: Runs, play: pair,
			numbers: []string{"shmget", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"}, tries: all(
				token("shared memory", "tmp", "abstract socket"),
				[]attempt{
					{name: "var", shows: inToken, maybe: otherHosts}, {name: "run", shows: inToken, maybe: byAnother},
					{name: "System V memory", shows: inToken, maybe: builtOut}, {name: "System V queue", shows: inToken, maybe: builtOut},
					{name: "POSIX queue", maybe: builtOut},
				})},
		{id: "U04", title: "tells another run something by a lock on a program that both may read", class: "A3/Lateral", wall: SharedFiles, play: pair, tries: names("lock")},
		{id: "R16", title: "drops a program that others read from memory", class: "A3/PeerDoS", wall: SharedFiles, play: evicting, armed: []string{"laid"},
			tries: []attempt{{name: "dropped", judged: true, maybe: "not every kernel tells what it has in memory"}}},
		{id: "U06", title: "watches when another run reads a program", class: "A3/Lateral", wall: SharedFiles, play: pair, tries: names("watch")},
		{id: "U09", title: "looks for what an earlier run left", class: "A3/Persist", wall: Runs, play: after, tries: all(
			token("shared memory", "tmp"),
			[]attempt{
				{name: "home", shows: inToken, maybe: freshRuns}, {name: "temporary folder", shows: inToken, maybe: freshRuns},
				{name: "skill", shows: inToken, maybe: freshRuns}, {name: "outputs", shows: inToken, maybe: freshRuns}, {name: "script", shows: inToken, maybe: freshRuns},
			})},
		{id: "U11", title: "sees other runs, and how busy the host is", class: "A3/Lateral", wall: Processes, play: pair, tries: all(
			names("process"), ofKernel(all(names("loadavg", "meminfo", "stat", "uptime", "net/dev"), perhaps(otherHosts, "interrupts", "diskstats"))),
			[]attempt{{name: "sys/kernel/random/boot_id", check: ofThisBoot, maybe: otherHosts}})},
		{id: "U12", title: "learns which host it is on", class: "A3/HostLeak", wall: Runs, tries: all(
			[]attempt{
				{name: "host name", check: func(_ *trial, s said) bool { n, err := os.Hostname(); return err == nil && s.detail == n }},
				{name: "cgroup", check: holds("tracon-"), maybe: "runs may have no cgroup"},
				{name: "boot", check: ofThisBoot, maybe: otherHosts},
			},
			perhaps(otherHosts, "machine", "file"))},
	}
}

const freshRuns = "every executor of this house lays a run's folders out anew"
