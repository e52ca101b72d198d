package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tracon-go/tracon/access"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/config"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/strictjson"
)

// runnerKeysFile is where in the data folder the keys of a runner service are kept,
// and maxRunnerKeys how many there may be.
const (
	runnerKeysFile = "runner-keys.json"
	maxRunnerKeys  = 1000
	maxRunnerFile  = 4 << 20
)

// A RunnerKey lets another host ask a runner service for the runs of some tenants. Of
// its secret a hash alone is kept.
type RunnerKey struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`    // of the peer: for the log, and for its tickets
	Tenants []string  `json:"tenants"` // "*" alone: all of them
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: it does not expire
	Revoked time.Time `json:"revoked,omitzero"` // zero: it is not revoked
	Hash    string    `json:"hash,omitempty"`   // never shown
}

// InForce reports whether k lets anybody in at the time now.
func (k RunnerKey) InForce(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// Peer returns whom k is of.
func (k RunnerKey) Peer() gate.Peer { return peerOf(k.Name, k.Tenants) }

func peerOf(name string, tenants []string) gate.Peer {
	if slices.Equal(tenants, []string{config.EveryTenant}) {
		return gate.Peer{Name: name, AllTenants: true}
	}
	return gate.Peer{Name: name, Tenants: tenants}
}

// runnerKeys reads the keys; there may be none.
func runnerKeys(data string) ([]RunnerKey, error) {
	return new(parsedKeys).read(data)
}

// parsedKeys are the keys as they were parsed last, by the bytes of their file: those
// are read each time, and parsed when they are others. It is safe for concurrent use.
type parsedKeys struct {
	last atomic.Pointer[keysFile]
}

type keysFile struct {
	text []byte
	keys []RunnerKey
}

// read returns the keys that the file holds now, which are not to be changed.
func (p *parsedKeys) read(data string) ([]RunnerKey, error) {
	b, err := ownfile.ReadPrivate(filepath.Join(data, runnerKeysFile), maxRunnerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the runner's keys: %w", err)
	}
	if l := p.last.Load(); l != nil && bytes.Equal(l.text, b) {
		return l.keys, nil
	}
	var keys []RunnerKey
	if err := strictjson.Unmarshal(b, &keys); err != nil {
		return nil, fmt.Errorf("the runner's keys: %w", err)
	}
	p.last.Store(&keysFile{b, keys})
	return keys, nil
}

// changeRunnerKeys changes the keys, one change at a time, when its entry stands in
// the log.
func (h *House) changeRunnerKeys(ctx context.Context, actor, what string, change func([]RunnerKey) ([]RunnerKey, RunnerKey, error)) (k RunnerKey, err error) {
	path := filepath.Join(h.Config.Data, runnerKeysFile)
	lock, err := ownfile.WaitLock(ctx, path+".lock")
	if err != nil {
		return RunnerKey{}, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	keys, err := runnerKeys(h.Config.Data)
	if err != nil {
		return RunnerKey{}, err
	}
	if keys, k, err = change(keys); err != nil {
		return RunnerKey{}, err
	}
	b, err := json.Marshal(keys)
	if err != nil {
		return RunnerKey{}, err
	}
	_, err = h.Log.Append(ctx, audit.Entry{Tenant: gate.HostTenant, Actor: audit.Clip(actor), Kind: audit.Keeping, Subject: "runner key " + what,
		Facts: audit.Facts("key", k.ID, "name", audit.Clip(k.Name), "tenants", audit.Clip(strings.Join(k.Tenants, " ")))})
	if err != nil {
		return RunnerKey{}, err
	}
	k.Hash = ""
	return k, ownfile.Write(path, b)
}

// CreateRunnerKey makes a key of the peer name for the tenants. Its secret is told this
// once. A name stands for one peer: that of a client certificate, of the fleet's control
// plane, or of a key in force for other tenants is refused (T09).
func (h *House) CreateRunnerKey(ctx context.Context, actor, name string, tenants []string, expires time.Time) (RunnerKey, access.Secret, error) {
	if err := errors.Join(grant.CheckName("key", name), config.CheckTenants(tenants)); err != nil {
		return RunnerKey{}, access.Secret{}, err
	}
	secret := access.NewSecret()
	k, err := h.changeRunnerKeys(ctx, actor, "create", func(keys []RunnerKey) ([]RunnerKey, RunnerKey, error) {
		if len(keys) >= maxRunnerKeys {
			return nil, RunnerKey{}, fmt.Errorf("there are %d keys of the runner, and there may be no more", len(keys))
		}
		if err := h.nameIsFree(keys, name, tenants); err != nil {
			return nil, RunnerKey{}, err
		}
		k := RunnerKey{ID: secret.ID(), Name: name, Tenants: tenants, Created: time.Now().UTC().Truncate(time.Second), Expires: expires, Hash: secret.Hash().String()}
		return append(keys, k), k, nil
	})
	return k, secret, err
}

// nameIsFree says whose name it is already, or nil.
func (h *House) nameIsFree(keys []RunnerKey, name string, tenants []string) error {
	if name == config.FleetPeer {
		return fmt.Errorf("the name %s is that of the fleet's control plane: take another", name)
	}
	if _, ok := h.Config.Runner.Clients[name]; ok {
		return fmt.Errorf("the name %s is that of a client certificate in runner_clients: take another", name)
	}
	now := time.Now()
	for _, k := range keys {
		if k.Name == name && k.InForce(now) && !sameTenants(k.Tenants, tenants) {
			return fmt.Errorf("the name %s has a key for the tenants %s already, %s: take another name, or revoke that key first", name, strings.Join(k.Tenants, ","), k.ID)
		}
	}
	return nil
}

func sameTenants(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// RevokeRunnerKey takes a key back: from now on it lets nobody in.
func (h *House) RevokeRunnerKey(ctx context.Context, actor, id string) (RunnerKey, error) {
	return h.changeRunnerKeys(ctx, actor, "revoke", func(keys []RunnerKey) ([]RunnerKey, RunnerKey, error) {
		i := slices.IndexFunc(keys, func(k RunnerKey) bool { return k.ID == id })
		if i < 0 {
			return nil, RunnerKey{}, fmt.Errorf("%w: the runner has no key %q", grant.ErrNotFound, id)
		}
		if keys[i].Revoked.IsZero() {
			keys[i].Revoked = time.Now().UTC().Truncate(time.Second)
		}
		return keys, keys[i], nil
	})
}

// RunnerKeys returns the keys, the newest first, without their hashes.
func (h *House) RunnerKeys() ([]RunnerKey, error) {
	keys, err := runnerKeys(h.Config.Data)
	slices.Reverse(keys)
	for i := range keys {
		keys[i].Hash = ""
	}
	return keys, err
}
