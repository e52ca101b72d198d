package fleet

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tracon-go/tracon/wire"
)

// Subjects, all of them below a pool's name, so that an outside cluster can tell
// pools apart by permissions alone:
//
//	tracon.POOL.offer.RUNTIME.TIER.LABEL    queue group: one runner answers
//	tracon.POOL.who                         every runner answers
//	tracon.POOL.at.RUNNER.MEMBER.VERB       to one process of that name, which no other hears
//	tracon.POOL.from.SESSION                to the control plane; nobody guesses SESSION
const root = "tracon"

// queue is the queue group of the runners.
const queue = "runners"

// noLabel stands where no label is asked for; every runner answers there.
const noLabel = "_"

func offerSubject(pool, runtime, tier, label string) string {
	if label == "" {
		label = noLabel
	} else {
		label = token(label)
	}
	return join(root, token(pool), "offer", token(runtime), token(tier), label)
}

func whoSubject(pool string) string { return join(root, token(pool), "who") }
func atSubject(pool, name, member string) string {
	return join(root, token(pool), "at", token(name), member)
}
func fromSubject(pool, session string) string { return join(root, token(pool), "from", session) }
func join(parts ...string) string             { return strings.Join(parts, ".") }

// Prefixes of the inboxes, where answers come. A runner has its own, for what is
// answered to the control plane or to another runner is not for it.
const hostInbox = "_INBOX.host"

func runnerInbox(name string) string { return join("_INBOX.runner", token(name)) }

// RunnerSubjects returns what a runner of that name may hear and say in the pool:
// the permissions for its credentials. It hears an offer as a member of the queue
// group alone, so that no other runner learns of a session; it cannot hear what
// other runners are told or say, nor tell them anything.
func RunnerSubjects(pool, name string) (hear, say []string) {
	p := join(root, token(pool))
	return []string{p + ".offer.> " + queue, p + ".who", join(p, "at", token(name), ">"), runnerInbox(name) + ".>", "$SRV.>"}, []string{p + ".from.*"}
}

// HostSubjects returns what a control plane may hear and say in the pool.
func HostSubjects(pool string) (hear, say []string) {
	p := join(root, token(pool))
	return []string{p + ".from.*", hostInbox + ".>"}, []string{p + ".offer.>", p + ".who", p + ".at.>"}
}

// maxMember is the most bytes of what tells two processes of one name apart.
const maxMember = 64

// named reports whether a runner's words for itself can be a subject. A server hangs up
// on whoever says a longer one, so that no runner must choose its length.
func named(runner, member string) bool {
	return runner != "" && len(runner) <= wire.MaxName && member != "" && len(member) <= maxMember
}

// token writes a name as one token of a subject: letters, digits and "-" stand for
// themselves, every other byte is "_" and two hex digits. No two names give the
// same token, and none is [noLabel].
func token(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// secret returns what nobody guesses: 128 bits in hex.
func secret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
