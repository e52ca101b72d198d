package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/tracon-go/tracon"
	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/internal/instance"
	"github.com/tracon-go/tracon/internal/ownfile"
	"github.com/tracon-go/tracon/internal/strictjson"
	"github.com/tracon-go/tracon/store/postgres"
)

// A settled says how far the log was looked through for calls of which nobody is
// known. It is kept beside the instances, so that a start reads what is new.
type settled struct {
	Size uint64     `json:"size"`
	Leaf audit.Hash `json:"leaf"` // the last one before Size: of another log it is another one
	Open []uint64   `json:"open"` // see [tracon.Watch]
}

const (
	settledFile = "settled"
	maxSettled  = 1 << 20
	// settleStep is how many entries are rather read again than written down.
	settleStep = 256
)

// settle closes the calls of those processes of which there is no sign here: neither
// a file beside this one's nor, where several hosts share the store, a row among
// them. So it is where a database was put back alone. The instances' folder is locked.
func (h *House) settle(ctx context.Context) error {
	path := filepath.Join(h.Config.Data, InstancesFolder, settledFile)
	was, err := h.settledAt(ctx, path)
	if err != nil {
		return err
	}
	w, n, err := tracon.Settle(ctx, h.Log, h.Store, tracon.Watch{Size: was.Size, Open: was.Open}, h.known)
	if n > 0 {
		h.logger.Warn("calls of processes of which there is no sign were closed as unknown", "calls", n)
	}
	if err == nil {
		err = h.closeKeys(ctx)
	}
	if err != nil || w.Size < was.Size+settleStep && slices.Equal(w.Open, was.Open) || w.Size == 0 {
		return err
	}
	last, err := h.Log.Leaf(ctx, w.Size-1)
	if err != nil {
		return err
	}
	text, err := json.Marshal(settled{w.Size, last.Hash, w.Open})
	if err != nil || len(text) > maxSettled {
		return err
	}
	return ownfile.Write(path, text)
}

// settledAt returns what was settled of this very log; zero where that is not known.
func (h *House) settledAt(ctx context.Context, path string) (s settled, err error) {
	text, err := ownfile.Read(path, maxSettled)
	if err != nil || strictjson.Unmarshal(text, &s) != nil || s.Size == 0 {
		return settled{}, nil
	}
	last, err := h.Log.Leaf(ctx, s.Size-1)
	switch {
	case errors.Is(err, audit.ErrNoEntry) || err == nil && last.Hash != s.Leaf:
		return settled{}, nil
	case err != nil:
		return settled{}, fmt.Errorf("looking for calls without an ending: %w", err)
	}
	return s, nil
}

// known reports whether there is a sign of the process that is the instance id.
func (h *House) known(ctx context.Context, id string) (bool, error) {
	here, err := instance.Lives(filepath.Join(h.Config.Data, InstancesFolder), id)
	st, shared := h.Store.(*postgres.Store)
	if here || err != nil || !shared {
		return here, err
	}
	return st.Joined(ctx, id)
}
