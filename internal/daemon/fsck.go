package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tracon-go/tracon/audit"
	"github.com/tracon-go/tracon/audit/notary"
	"github.com/tracon-go/tracon/executor/process"
	"github.com/tracon-go/tracon/fsck"
	"github.com/tracon-go/tracon/image"
	"github.com/tracon-go/tracon/internal/instance"
	"github.com/tracon-go/tracon/store/postgres"
)

// Fsck checks that what is kept agrees with the log; see [fsck.Check]; and that
// each runtime that is here is what was imported. It changes nothing, and closes
// nothing of dead processes either.
func (h *House) Fsck(ctx context.Context, progress func(what string, done uint64), tell func(fsck.Finding)) (fsck.Report, error) {
	instances := filepath.Join(h.Config.Data, InstancesFolder)
	var failed, silent error
	report, err := fsck.Check(ctx, fsck.Config{
		Store: h.Store, Log: h.Log, Progress: progress,
		Verify: func(ctx context.Context, progress func(uint64)) (uint64, error) {
			signed, err := h.signed()
			if err != nil {
				return 0, err
			}
			if !signed && !h.gone { // nothing ran here to its end yet
				tree, err := h.Log.Verify(ctx, progress)
				keys, unread := h.Notary.Keys()
				// A database that was copied without its keys has its entries still.
				if err = errors.Join(err, unread); err == nil && len(keys) == 0 && tree.Size == 0 {
					signed, err = h.neverSigned(ctx)
				}
				if !signed {
					return tree.Size, err
				}
			}
			v, err := h.VerifyLog(ctx, Against{}, progress)
			if errors.Is(err, notary.ErrQuorum) || errors.Is(err, notary.ErrPlace) {
				silent = err // what the log is in itself is known even so
				err = nil
			}
			return v.Tree.Size, err
		},
		Alive: func(admission audit.Entry) bool {
			lives, err := h.lives(ctx, admission.Fact("instance"))
			failed = errors.Join(failed, err)
			return lives
		},
		Leftovers: func(ctx context.Context) ([]string, error) {
			dead, err1 := instance.Left(ctx, instances)
			staged, err2 := process.Leftovers(h.Config.Runtime)
			return append(dead, staged...), errors.Join(err1, err2)
		},
	}, tell)
	if err = errors.Join(err, failed); err != nil {
		return report, err
	}
	if silent != nil {
		report.Findings++
		tell(fsck.Finding{Invariant: "anchors", What: silent.Error(), Remedy: "make the place or the witness answer again; until then a log that was rolled back does not show there"})
	}
	err = h.fsckImages(ctx, progress, func(f fsck.Finding) {
		report.Findings++
		tell(f)
	})
	return report, err
}

// mend is what to do about a runtime that was altered.
const mend = "somebody or something wrote around Tracon: keep a copy for the inquiry, end what runs in it, and import the same again, which replaces it"

// fsckImages reads each runtime that is here. One that is being imported or
// removed, or was, is none yet, or no more.
func (h *House) fsckImages(ctx context.Context, progress func(what string, done uint64), tell func(fsck.Finding)) error {
	digests, err := h.Images.List()
	if err != nil {
		return err
	}
	for _, d := range digests {
		i, err := h.Images.Image(d)
		if err == nil {
			err = errors.Join(i.Verify(ctx, func(done uint64) {
				if progress != nil {
					progress("entries of the runtime "+d.String(), done)
				}
			}), i.Close())
		}
		switch {
		case errors.Is(err, image.ErrDamaged):
			tell(fsck.Finding{Invariant: "runtime", What: fmt.Sprintf("%s: %v", d, err), Remedy: mend})
		case err != nil && !errors.Is(err, image.ErrNotFound) && !errors.Is(err, image.ErrInUse):
			return fmt.Errorf("fsck: the runtime %s: %w", d, err)
		}
	}
	return nil
}

// signed reports whether anybody keeps a checkpoint of the log.
func (h *House) signed() (bool, error) {
	keepers, err := h.Notary.Claims()
	if err != nil {
		return false, err
	}
	for _, claims := range keepers {
		for _, err := range claims {
			return true, err
		}
	}
	return false, nil
}

// lives reports whether the process that is the instance id is still there: by its
// lock here, and where several hosts share the store, by its lease.
func (h *House) lives(ctx context.Context, id string) (bool, error) {
	here, err := instance.Lives(filepath.Join(h.Config.Data, InstancesFolder), id)
	st, shared := h.Store.(*postgres.Store)
	if here || err != nil || !shared || id == "" {
		return here, err
	}
	return st.Lives(ctx, id)
}
