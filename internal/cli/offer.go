package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/daemon"
)

// offer is what is convenient on a laptop: where the script has no grant, it
// shows what would run and asks, or takes --grant for a yes. It never replaces
// a pin and never brings back what was revoked; the gates decide in any case.
func (a *app) offer(ctx context.Context, h *daemon.House, skill string, call gate.Call, yes bool) error {
	runner, err := h.Start(ctx)
	if err != nil {
		return lost(err)
	}
	standing, err := runner.Standing(ctx)
	if err != nil {
		return err
	}
	ref := grant.Ref{Tenant: call.Tenant, Skill: call.Skill, Script: call.Script}
	review, err := h.Admin.Review(ctx, ref)
	if errors.Is(err, gate.ErrUnknown) || errors.Is(err, bundle.ErrContent) || errors.Is(err, grant.ErrRef) {
		return nil // the gates refuse it, and log it
	}
	if err != nil {
		return err
	}
	has := review.Granted
	switch state := has.State(time.Now()); {
	case has.ID != "" && state == "in force" && has.Pin != review.Content.Digest():
		return nil // refused by its pin; only `grant add --replace` replaces it
	case has.ID != "" && state == "in force":
		if yes {
			return a.openUp(ctx, h, call, review)
		}
		return nil
	case has.ID != "" && (state == "revoked" || has.Pin != review.Content.Digest()):
		if yes {
			a.say("tracon: --grant does not bring back grant %s, which is %s; `tracon grant add` does", has.ID, state)
		}
		return nil
	case h.Config.Production:
		if yes {
			return hint(errors.New("--grant does not exist in production"), "review and grant it: tracon grant review %s", quoteWords(skill, call.Script))
		}
		return nil
	case yes:
	case !a.inTTY || a.json:
		a.showWhatWouldRun(ctx, h, review)
		return nil
	default:
		a.showWhatWouldRun(ctx, h, review)
		ok, err := a.ask(ctx, "Grant this and run it?")
		if err != nil || !ok {
			return err
		}
	}
	if err := a.openUp(ctx, h, call, review); err != nil {
		return err
	}
	g, err := h.Admin.Grant(ctx, admin.Granting{Actor: a.who(), Ref: ref, Digest: review.Content.Digest(), MinTier: standing.Tier,
		Reason: "run --grant", Source: source(skill)})
	if err != nil {
		return err
	}
	a.say("tracon: granted %s to tenant %s while its %s stay as they are (grant %s)", ref, call.Tenant, sizes(review.Content), g.ID)
	return nil
}

// openUp turns on what a first run needs, and says each thing that it changes.
// With a configuration file it changes nothing of the host's and names the key.
func (a *app) openUp(ctx context.Context, h *daemon.House, call gate.Call, review admin.Review) error {
	script, _, _ := review.Content.Text(call.Script)
	ext := gate.Extension(call.Script, script)
	if ext == "" {
		return nil // the gate says so
	}
	host, err := h.Hosts.Host(ctx)
	if err != nil {
		return err
	}
	if h.Config.File != "" {
		if !host.Enabled {
			return hint(errors.New("scripts are off on this host"), "set `enabled: true` in %s", h.Config.File)
		}
		in, ok := host.Interpreters[ext]
		if ok && in.Path != "" && in.Digest.IsZero() { // it could not be probed; the error says why
			_, err := h.Probe(ctx, ext, h.Config.Interpreters[ext])
			return err
		}
		if !ok {
			return hint(fmt.Errorf("the host's allow-list has no interpreter for %q", ext), "add it below `interpreters:` in %s, such as `%s: /usr/bin/…`", h.Config.File, ext)
		}
		return nil
	}
	if in, ok := host.Interpreters[ext]; !ok || !host.Enabled {
		listed := ""
		if in.Path != "" {
			listed = config.FormatInterpreter(in)
		}
		found, err := h.Probe(ctx, ext, listed)
		if err != nil {
			return err
		}
		if _, err := h.Admin.SetHost(ctx, a.who(), func(s *gate.Host) error {
			s.Enabled = true
			if s.Interpreters == nil {
				s.Interpreters = map[string]gate.Interpreter{}
			}
			s.Interpreters[ext] = found
			return nil
		}); err != nil {
			return err
		}
		a.say("tracon: switched this host on, with %s for .%s scripts", config.FormatInterpreter(found), ext)
	}
	before, err := h.Admin.Policy(ctx, call.Tenant)
	if err != nil {
		return err
	}
	after, err := h.Admin.SetPolicy(ctx, a.who(), call.Tenant, func(p *gate.Policy) error {
		p.Enabled = true
		for _, have := range p.Interpreters {
			if have == ext {
				return nil
			}
		}
		p.Interpreters = append(p.Interpreters, ext)
		return nil
	})
	if err != nil {
		return err
	}
	if !before.Enabled || len(before.Interpreters) != len(after.Interpreters) {
		a.say("tracon: switched tenant %s on, for .%s scripts", call.Tenant, ext)
	}
	return nil
}

// source says where the skill that word means comes from, for information.
func source(word string) string {
	if !daemon.IsFolder(word) {
		return ""
	}
	if abs, err := filepath.Abs(word); err == nil {
		return abs
	}
	return word
}

func sizes(c bundle.Content) string {
	n, size := c.Listing().Size()
	return fmt.Sprintf("%d files (%d bytes)", n, size)
}

// showWhatWouldRun shows files, sizes, digest and interpreter.
func (a *app) showWhatWouldRun(ctx context.Context, h *daemon.House, r admin.Review) {
	a.say("%s has no grant. What would run:", r.Ref)
	for i, path := range r.Content.Paths() {
		if i == 30 {
			a.say("  … and %d more files", len(r.Content.Paths())-i)
			break
		}
		text, digest, _ := r.Content.Text(path)
		a.say("  %9d  %s  %s", len(text), digest.Hex()[:12], path)
	}
	a.say("  %s, digest %s", sizes(r.Content), r.Content.Digest())
	script, _, _ := r.Content.Text(r.Ref.Script)
	ext := gate.Extension(r.Ref.Script, script)
	host, err := h.Hosts.Host(ctx)
	if in, ok := host.Interpreters[ext]; err == nil && ok {
		a.say("  with %s", config.FormatInterpreter(in))
	} else if found, err := h.Probe(ctx, ext, ""); err == nil {
		a.say("  with %s, which the host does not list yet", found.Path)
	} else {
		a.say("  %s", err)
	}
}

// ask asks a person. Anything but a yes is a no.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	answer, err := a.answer(ctx, question+" [y/N] ")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// answer returns the line that a person writes.
func (a *app) answer(ctx context.Context, question string) (string, error) {
	io.WriteString(a.err, question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return "", context.Cause(ctx)
	}
}
