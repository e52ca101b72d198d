package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/executor/remote"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/wire"
	"github.com/tracon-go/tracon/wire/ticket"
)

// A Sight is one thing that was seen of the runners that run this host's scripts.
type Sight struct {
	What   string // "runner", or a pool of a fleet
	OK     bool
	Detail string
	Remedy string // empty: there is nothing to do
}

// Reached looks at whoever runs this host's scripts elsewhere, and says what is missing.
// It starts nothing there. Where scripts run on this host it returns nothing.
func (h *House) Reached(ctx context.Context) []Sight {
	if !away(h.Config.Executor) {
		return nil
	}
	wanted, err := h.wanted(ctx)
	if err != nil {
		return []Sight{{What: "runners", Detail: err.Error()}}
	}
	e, err := h.executor()
	if err != nil {
		return []Sight{{What: "runners", Detail: err.Error(), Remedy: h.unopened()}}
	}
	switch e := e.(type) {
	case *remote.Executor:
		return []Sight{h.seenRunner(ctx, e, wanted)}
	case *fleetExecutor:
		var list []Sight
		for _, s := range e.Look(ctx) {
			list = append(list, h.seenPool(s, wanted))
		}
		return list
	}
	return nil
}

// unopened is what to do where the executor cannot be had.
func (h *House) unopened() string {
	if f := h.Config.Fleet; h.Config.Executor == fleet.Name && f.Listen != "" && (len(f.URLs) == 0 || f.SeedFile == "") {
		return "the server lies within `tracon serve`: to look at its runners make a key with `tracon runner join-key FILE`, put what it prints in fleet_hosts, and set fleet_urls and fleet_seed_file beside"
	}
	return "mend what the sentence names"
}

// wanted are the runtimes that the allow-list names.
func (h *House) wanted(ctx context.Context) ([]string, error) {
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, in := range host.Interpreters {
		if in.Name != "" {
			names[in.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// seenRunner is what is seen of the runner of the executor remote.
func (h *House) seenRunner(ctx context.Context, e *remote.Executor, wanted []string) Sight {
	r := h.Config.Remote
	s := Sight{What: "runner"}
	info, err := e.Info(ctx)
	if err != nil {
		s.Detail, s.Remedy = r.Address+" does not answer: "+err.Error(), h.remedyOf(err)
		return s
	}
	if !info.Knows() {
		s.OK = r.Name == "" && r.TicketKey == ""
		s.Detail = r.Address + " tells nothing of itself: it speaks the plain wire, so single files with JSON on standard input run, and no others"
		if !s.OK {
			s.Remedy = "see whether remote is the address of the runner itself: remote_name and remote_ticket_key need one that tells its name"
		}
		return s
	}
	s.Detail = fmt.Sprintf("%s at %s: %s", clipped(info.Name), r.Address, toldOf(info))
	switch {
	case r.Name != "" && info.Name != r.Name:
		s.Remedy = fmt.Sprintf("remote_name says %s: nothing is sent to another; see who answers there, or change remote_name", r.Name)
	case info.RequireTicket && r.TicketKey == "":
		s.Remedy = "it takes no run without a ticket: set remote_ticket_key and remote_name, and have its runner_ticket_keys name the public key"
	case r.TicketKey != "" && !knowsKey(info, r.TicketKey, remoteTicketKey):
		s.Remedy = "it does not know the key of remote_ticket_key: have its runner_ticket_keys name, for this host's key or certificate, what `openssl pkey -pubout` makes of it"
	case info.Draining:
		s.Remedy = "it drains and takes no more runs: start it again, or name another in remote"
	case info.Slots > 0 && len(info.Runtimes) == 0:
		s.Remedy = "it has no runtimes, or is switched off: set enabled and runtimes there"
	default:
		s.OK = true
	}
	return lacking(s, wanted, info.Runtimes)
}

// remedyOf is what to do about a runner that does not tell of itself.
func (h *House) remedyOf(err error) string {
	f, _ := errors.AsType[*remote.Error](err)
	_, stranger := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case stranger:
		return "its certificate is signed by nobody who is trusted here: set remote_ca to the certificates of who signed it"
	case invalid:
		return "its certificate does not hold: have the runner's operator renew tls_cert there, and look at this machine's clock"
	case alert:
		return "the runner does not take this host's certificate: have remote_cert made anew, signed by one of runner_client_ca there, and look at both clocks"
	case other:
		return "name it in remote as its certificate does"
	case f == nil || f.Kind == remote.Unsendable:
		return "mend what the sentence names"
	case f.Status == 401:
		return "have the runner's operator make a key with `tracon runner key create`, and put it into remote_key_file, or into remote_cert a certificate that runner_clients names"
	case f.Code == string(gate.SwitchGate):
		return "the runner is switched off: set enabled: true there"
	case f.Code == string(gate.GrantGate):
		return "have the runner's operator let this host ask for the tenant, by a key (`tracon runner key create NAME --tenants …`) or in runner_clients; where it is the ticket, look at remote_ticket_key, at runner_ticket_keys there, and at both clocks"
	case f.Code == string(gate.InterpreterGate):
		return "add the runtime to runtimes there, or name one that it has in interpreters: `tracon doctor` shows them"
	case f.Code == string(gate.TierGate):
		return "mend the runner's walls, which `tracon doctor` shows there, or ask for less"
	case f.Kind == remote.Busy:
		return "ask again; where that goes on, give the runner more slots, or start it again where it drains"
	case f.Status == 403:
		return "the runner is not for this host: ask who runs it"
	case f.Status != 0:
		return "something else answers at that address, or the runner is amiss: look at its log"
	}
	see := "see that `tracon runner serve` runs there, and that remote and remote_reach name where"
	if h.Config.Remote.Cert != "" {
		// Of TLS 1.3 a client learns that its certificate is not taken only behind the handshake, and at times not at all.
		see += "; where it hangs up, have remote_cert made anew, signed by one of runner_client_ca there"
	}
	return see
}

// Remedy says what to do about a run that whoever runs this host's scripts did not start,
// or is empty where nothing is known.
func (h *House) Remedy(err error) string {
	if !away(h.Config.Executor) || !errors.Is(err, executor.ErrUnavailable) {
		return ""
	}
	switch {
	case errors.Is(err, fleet.ErrNoPool):
		return "give the tenant a pool in fleet_pools; * is for every tenant that no other pool names"
	case errors.Is(err, fleet.ErrNoPlace):
		return "ask again; where that goes on, start more runners, or give them more slots: `tracon runner list` shows them"
	case h.Config.Executor == fleet.Name:
		return "see by `tracon runner list` and `tracon doctor` that a runner is there that takes runs, with the runtime, the label and the tier, and that its fleet_tenants have the tenant; its log says why it refuses one"
	}
	return h.remedyOf(err)
}

// seenPool is what is seen of a pool of the fleet.
func (h *House) seenPool(seen fleet.Seen, wanted []string) Sight {
	s := Sight{What: "pool " + seen.Pool.Name}
	if seen.Err != nil {
		s.Detail, s.Remedy = seen.Err.Error(), "see that the NATS servers of fleet_urls run, and that this host's key is known there"
		return s
	}
	if len(seen.Runners) == 0 {
		s.Detail, s.Remedy = "the server is reached, and no runner is there", "start `tracon runner serve` with fleet_join: "+seen.Pool.Name+"; its log says why it does not join"
		return s
	}
	var told []string
	var takes []wire.Info // of those that runs can go to
	var low, drain, untold, other, twice []string
	for i, r := range seen.Runners { // in the order of their names
		name := clipped(r.Info.Name)
		if i > 0 && seen.Runners[i-1].Info.Name == r.Info.Name && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
		told = append(told, name+": "+toldOf(r.Info))
		switch {
		case r.Info.Draining:
			drain = append(drain, name)
		case !grant.Tier(r.Info.Tier).Meets(h.Config.Fleet.Tier):
			low = append(low, name)
		case r.Info.RequireTicket && h.Config.Fleet.TicketKey == "":
			untold = append(untold, name)
		case h.Config.Fleet.TicketKey != "" && !knowsKey(r.Info, h.Config.Fleet.TicketKey, fleetTicketKey):
			other = append(other, name)
		default:
			takes = append(takes, r.Info)
		}
	}
	s.OK, s.Detail = len(takes) > 0, strings.Join(told, "; ")
	var do []string
	if len(drain) > 0 {
		do = append(do, strings.Join(drain, ", ")+" drains and takes no more runs: start it again when it may")
	}
	if len(low) > 0 {
		do = append(do, fmt.Sprintf("%s stands below %s: mend its walls, or lower fleet_tier", strings.Join(low, ", "), h.Config.Fleet.Tier))
	}
	if len(untold) > 0 {
		do = append(do, strings.Join(untold, ", ")+" takes no run without a ticket: set fleet_ticket_key")
	}
	if len(other) > 0 {
		do = append(do, fmt.Sprintf("%s does not know the key of fleet_ticket_key: have its runner_ticket_keys name, for %s, what `openssl pkey -pubout` makes of it", strings.Join(other, ", "), config.FleetPeer))
	}
	if len(twice) > 0 {
		do = append(do, "two processes are called "+strings.Join(twice, ", ")+": unless one of them is just leaving, give each a runner_name and a key of its own")
	}
	s.Remedy = strings.Join(do, "; ")
	if !s.OK {
		return s
	}
	var runtimes []wire.Runtime
	for _, info := range takes {
		runtimes = append(runtimes, info.Runtimes...)
	}
	return lacking(s, wanted, runtimes)
}

// knowsKey reports whether the runner takes tickets that the key of the file signs, as far
// as it says. A file that cannot be read is not the runner's fault.
func knowsKey(i wire.Info, path string, read func(string) (ed25519.PrivateKey, error)) bool {
	key, err := read(path)
	if i.TicketKeys == nil || err != nil {
		return true
	}
	public, ok := key.Public().(ed25519.PublicKey)
	return ok && slices.Contains(i.TicketKeys, ticket.Fingerprint(public))
}

// lacking adds the runtimes of the allow-list that nobody has.
func lacking(s Sight, wanted []string, has []wire.Runtime) Sight {
	var gone []string
	for _, name := range wanted {
		if !slices.ContainsFunc(has, func(r wire.Runtime) bool { return r.Name == name }) {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 || !s.OK {
		return s
	}
	s.OK = false
	s.Remedy = strings.TrimPrefix(s.Remedy+"; ", "; ") + fmt.Sprintf("nobody has the runtime %s, which interpreters names: add it to a runner's runtimes, or take it off the list", strings.Join(gone, ", "))
	return s
}

// toldOf is a runner's word for itself, in short.
func toldOf(i wire.Info) string {
	var runtimes []string
	for _, r := range i.Runtimes {
		if gate.CheckRuntime(r.Name) == nil && len(runtimes) < maxTold {
			runtimes = append(runtimes, r.Name)
		}
	}
	tier := "no tier that is known"
	if t := grant.Tier(i.Tier); t.Valid() {
		tier = "tier " + i.Tier
	}
	text := fmt.Sprintf("%s, runtimes %s, %d of %d places taken", tier, strings.Join(runtimes, " "), i.Busy, i.Slots)
	if i.Draining {
		text += ", draining"
	}
	return text
}

const maxTold = 32 // runtimes of a runner that are told of

// clipped is a runner's name as it can be shown.
func clipped(name string) string {
	if grant.CheckName("runner", name) != nil {
		return fmt.Sprintf("%.40q", name)
	}
	return name
}
