package hostile

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// numbers are those of the system calls that probes make by number.
var numbers = map[string]int{
	"unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS, "clone": unix.SYS_CLONE, "clone3": unix.SYS_CLONE3,
	"fsopen": unix.SYS_FSOPEN, "open_tree": unix.SYS_OPEN_TREE, "memfd_create": unix.SYS_MEMFD_CREATE,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
	"renameat2": unix.SYS_RENAMEAT2, "pidfd_open": unix.SYS_PIDFD_OPEN, "pidfd_send_signal": unix.SYS_PIDFD_SEND_SIGNAL,
	"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "kcmp": unix.SYS_KCMP,
	"exit": unix.SYS_EXIT, "socket": unix.SYS_SOCKET, "personality": unix.SYS_PERSONALITY, "ioctl": unix.SYS_IOCTL, "seccomp": unix.SYS_SECCOMP, "keyctl": unix.SYS_KEYCTL,
	"shmget": unix.SYS_SHMGET, "shmctl": unix.SYS_SHMCTL, "msgget": unix.SYS_MSGGET, "msgsnd": unix.SYS_MSGSND,
	"msgrcv": unix.SYS_MSGRCV, "msgctl": unix.SYS_MSGCTL, "mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK,
}

// A systemCall is one that no script needs, with arguments that mean nothing, so
// that a kernel which gets it refuses it for them and does nothing.
type systemCall struct {
	name  string
	nr    int
	args  []int
	root  bool   // anybody else is refused before the arguments are looked at
	maybe string // why a host may not have it
}

const (
	bad      = 1 // an address at which nothing lies
	builtOut = "the kernel may be built without it"
	switched = "a host may have it switched off"
)

// The calls by the case that makes them.
var (
	uringCalls = []systemCall{
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, []int{0, bad}, false, switched},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, []int{-1, 0, 0, 0, 0, 0}, false, ""},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, []int{-1, 0, 0, 0}, false, switched},
	}
	engineCalls = []systemCall{
		{"bpf", unix.SYS_BPF, []int{-1, bad, 0}, true, ""},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, []int{bad, 0, -1, -1, 0xffff}, false, switched},
		{"userfaultfd", unix.SYS_USERFAULTFD, []int{0xfffff}, true, builtOut},
		{"kexec_load", unix.SYS_KEXEC_LOAD, []int{0, 99999, bad, 0}, true, builtOut},
		{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, []int{-1, -1, 0, 0, 0xffff}, true, builtOut},
		{"init_module", unix.SYS_INIT_MODULE, []int{bad, 1, bad}, true, builtOut},
		{"finit_module", unix.SYS_FINIT_MODULE, []int{-1, bad, 0xffff}, true, builtOut},
		{"delete_module", unix.SYS_DELETE_MODULE, []int{bad, 0}, true, builtOut},
	}
	keyCalls = []systemCall{
		{"keyctl", unix.SYS_KEYCTL, []int{9999}, false, builtOut},
		{"add_key", unix.SYS_ADD_KEY, []int{bad, bad, 0, 0, 0}, false, builtOut},
		{"request_key", unix.SYS_REQUEST_KEY, []int{bad, bad, 0, 0}, false, builtOut},
	}
	clockCalls = []systemCall{
		{"settimeofday", unix.SYS_SETTIMEOFDAY, []int{bad, 0}, false, ""},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, []int{0, bad}, false, ""},
		{"clock_adjtime", unix.SYS_CLOCK_ADJTIME, []int{0, bad}, false, ""},
		{"adjtimex", unix.SYS_ADJTIMEX, []int{bad}, false, ""},
		{"sethostname", unix.SYS_SETHOSTNAME, []int{bad, 1}, true, ""},
		{"setdomainname", unix.SYS_SETDOMAINNAME, []int{bad, 1}, true, ""},
	}
	memoryCalls = []systemCall{
		{"mbind", unix.SYS_MBIND, []int{1, 1, 99, 0, 0, 0xffff}, false, builtOut},
		{"set_mempolicy", unix.SYS_SET_MEMPOLICY, []int{9999, 0, 0}, false, builtOut},
		{"migrate_pages", unix.SYS_MIGRATE_PAGES, []int{0, 1 << 30, bad, bad}, false, builtOut},
		{"move_pages", unix.SYS_MOVE_PAGES, []int{0, 1, bad, bad, bad, 0xffff}, false, builtOut},
	}
	otherCalls = []systemCall{
		{"reboot", unix.SYS_REBOOT, []int{0, 0, 0, 0}, true, ""}, // not the magic numbers
		{"swapon", unix.SYS_SWAPON, []int{bad, 0}, true, builtOut},
		{"swapoff", unix.SYS_SWAPOFF, []int{bad}, true, builtOut},
		{"acct", unix.SYS_ACCT, []int{bad}, true, builtOut},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, []int{-1, bad, 0}, true, builtOut},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, []int{-1, bad, bad, bad, 0xffff}, false, builtOut},
		{"mount", unix.SYS_MOUNT, []int{bad, bad, bad, 0, 0}, false, ""},
		{"umount2", unix.SYS_UMOUNT2, []int{bad, 0x7fff0000}, false, ""},
		{"pivot_root", unix.SYS_PIVOT_ROOT, []int{bad, bad}, true, ""},
		{"move_mount", unix.SYS_MOVE_MOUNT, []int{-1, bad, -1, bad, 0x7fff0000}, true, ""},
		{"open_tree", unix.SYS_OPEN_TREE, []int{-1, bad, 0x7ff00000}, false, ""},
		{"fsopen", unix.SYS_FSOPEN, []int{bad, 0xff}, true, ""},
		{"fsconfig", unix.SYS_FSCONFIG, []int{-1, 0, 0, 0, 0}, false, ""},
		{"fsmount", unix.SYS_FSMOUNT, []int{-1, 0xffff, 0}, true, ""},
		{"fspick", unix.SYS_FSPICK, []int{-1, bad, 0xffff}, true, ""},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, []int{-1, bad, 0x7fff0000, 0, 0}, false, ""},
		{"chroot", unix.SYS_CHROOT, []int{bad}, false, ""},
		{"unshare", unix.SYS_UNSHARE, []int{0x7fffffff}, false, ""},
		{"setns", unix.SYS_SETNS, []int{-1, 0}, false, ""},
		{"clone3", unix.SYS_CLONE3, []int{bad, 0}, false, ""},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, []int{0x7fffffff, 0}, true, builtOut},
		{"syslog", unix.SYS_SYSLOG, []int{99, 0, 0}, true, builtOut},
		{"splice", unix.SYS_SPLICE, []int{-1, 0, -1, 0, 1, 0}, false, ""},
		{"tee", unix.SYS_TEE, []int{-1, -1, 1, 0}, false, ""},
		{"vmsplice", unix.SYS_VMSPLICE, []int{-1, 0, 1, 0}, false, ""},
		{"shmget", unix.SYS_SHMGET, []int{0x7ac0ffee, 0, 0}, false, builtOut},
		{"msgget", unix.SYS_MSGGET, []int{0x7ac0ffee, 0}, false, builtOut},
		{"semget", unix.SYS_SEMGET, []int{0x7ac0ffee, 0, 0}, false, builtOut},
		{"mq_open", unix.SYS_MQ_OPEN, []int{bad, 0, 0, 0}, false, builtOut},
		{"kcmp", unix.SYS_KCMP, []int{1, 1, 99, 0, 0}, false, builtOut},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, []int{-1, 0, 0}, false, ""},
		{"process_madvise", unix.SYS_PROCESS_MADVISE, []int{-1, 0, 0, 0, 0}, false, builtOut},
		{"memfd_create", unix.SYS_MEMFD_CREATE, []int{bad, 0}, false, ""},
		{"memfd_secret", unix.SYS_MEMFD_SECRET, []int{0x7fff0000}, false, builtOut},
	}
)

// word is how a probe is told of the call.
func (c systemCall) word() string {
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = strconv.Itoa(a)
	}
	return strconv.Itoa(c.nr) + ":" + strings.Join(args, ",")
}

// attempts returns the attempts of the calls.
func attempts(calls []systemCall) []attempt {
	var list []attempt
	for _, c := range calls {
		list = append(list, attempt{name: c.name, root: c.root, maybe: c.maybe})
	}
	return list
}
