//go:build linux

package hostile

import "slices"

func networkCases() []testCase {
	inet := func(tries []attempt) []attempt {
		for i := range tries {
			tries[i].net = true
		}
		return tries
	}
	var families []attempt
	for _, n := range []string{"AX25", "IPX", "KEY", "PACKET", "RDS", "PPPOX", "CAN", "TIPC", "BLUETOOTH", "IUCV", "RXRPC", "PHONET", "IEEE802154", "CAIF", "ALG", "NFC", "VSOCK", "KCM", "QIPCRTR", "SMC", "XDP", "MCTP"} {
		families = append(families, attempt{name: n, maybe: builtOut})
	}
	const noIPv6 = "a host may have no IPv6"
	return []testCase{
		{id: "N01", title: "connects to the host's loopback and looks for ways out", class: "A3/Exfil", wall: Network, tries: all(
			[]attempt{{name: "TCP", shows: inListener}},
			of("py", all(showing(inListener, "UDP", "any address"),
				[]attempt{{name: "TCP over IPv6", shows: inListener, maybe: noIPv6}, {name: "IPv4 in IPv6", shows: inListener, maybe: noIPv6}},
				perhaps("a host may have no network", "a way to the internet", "a way to the metadata service", "a way over IPv6"))))},
		{id: "N02", title: "asks for names", class: "A3/Exfil", wall: Network, tries: all(
			showing(inListener, "question"), perhaps(otherHosts, "servers", "name service"))},
		{id: "N03", title: "makes sockets of every family", class: "A3/Escape", wall: Network, numbers: []string{"socket"}, tries: all(
			inet(names("INET")), inet(perhaps(noIPv6, "INET6")), inet(forRoot("raw")), names("NETLINK", "high bits"), families)},
		{id: "N18", title: "waits for a visit from the host", class: "A3/Exfil", wall: Network, play: visited, tries: judged("peer")},
	}
}

func kernelCases() []testCase {
	const x86 = "not every kernel and machine has it"
	return []testCase{
		{id: "K01", title: "makes system calls that no script needs", class: "A3/Escape", wall: Kernel, calls: otherCalls, tries: attempts(otherCalls)},
		{id: "K02", title: "makes system calls by another table", class: "A3/Escape", wall: Kernel, tries: perhaps(x86, "32-bit gate", "second table")},
		{id: "K03", title: "makes an io_uring, by which other calls pass unseen", class: "A3/Escape", wall: Kernel, calls: uringCalls, tries: attempts(uringCalls)},
		{id: "K04", title: "loads code into the kernel", class: "A3/Escape", wall: Kernel, calls: engineCalls, tries: attempts(engineCalls)},
		{id: "K05", title: "reads the host's keyring", class: "A3/SecretLeak", wall: Kernel, calls: keyCalls, numbers: []string{"keyctl"}, tries: all(attempts(keyCalls),
			[]attempt{{name: "found", shows: inKeyring, maybe: builtOut}, {name: "by number", shows: inKeyring, maybe: builtOut}, {name: "list", maybe: builtOut}})},
		{id: "K07", title: "clones into every kind of namespace", class: "A3/Escape", wall: Kernel, numbers: []string{"clone"}, armed: []string{"threads"},
			tries: perhaps(closedNS, "mount", "cgroup", "uts", "ipc", "user", "pid", "net", "high bits")},
		{id: "K08", title: "takes another personality", class: "A3/Escape", wall: Kernel, numbers: []string{"personality"},
			tries: names("executable data", "no random addresses", "high bits", "another system")},
		{id: "K09", title: "types into a terminal", class: "A3/HostTamper", wall: Kernel, numbers: []string{"ioctl"},
			tries: names("TIOCSTI", "TIOCLINUX", "TIOCSETD", "TIOCSTI with high bits", "TIOCLINUX with high bits", "TIOCSETD with high bits")},
		{id: "K10", title: "puts a filter that lets everything through behind the one that stands", class: "A3/Escape", wall: Kernel, numbers: []string{"seccomp", "memfd_create", "unshare"},
			tries: names("looser", "looser on all threads")},
		{id: "K13", title: "leaves its cgroup", class: "A3/HostDoS", wall: Privileges, numbers: []string{"unshare"}, tries: all(
			names("tree"), perhaps("runs may have no cgroup", "place"), []attempt{{name: "moving", root: true, maybe: otherHosts}}, perhaps(closedNS, "mounting"))},
		{id: "K14", title: "sets the clock and the names of the host", class: "A3/HostTamper", wall: Kernel, calls: clockCalls, tries: attempts(clockCalls)},
		{id: "K15", title: "takes precedence over other processes", class: "A3/HostDoS", wall: Privileges,
			tries: []attempt{{name: "real time", root: true, maybe: byAnother}, {name: "niceness", root: true, maybe: byAnother, own: true}}},
		{id: "R15", title: "has the host write to its disks", class: "A3/HostDoS", wall: Kernel, tries: names("file systems", "a file", "what is in a file", "a part of a file")},
		{id: "K16", title: "locks memory, places it, and raises its limits", class: "A3/HostDoS", wall: Privileges, calls: memoryCalls,
			tries: slices.Concat(attempts(memoryCalls), perhaps("the host's own limits may be as low", "locked memory", "raising a limit"))},
	}
}
