//go:build unix

package execfile_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/internal/execfile"
)

// What was written can be executed at once, however many processes others start
// meanwhile; written with os.WriteFile, some of these fail with "text file busy".
func TestNeverBusy(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 40 {
				path := filepath.Join(dir, strconv.Itoa(i)+"."+strconv.Itoa(j))
				if err := execfile.Write(path, strings.NewReader("#!/bin/sh\n")); err != nil {
					t.Error(err)
					return
				}
				if err := exec.CommandContext(t.Context(), path).Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestWriteRefusesWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := execfile.Write(path, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	if err := execfile.Write(path, strings.NewReader("")); err == nil {
		t.Error("it was overwritten")
	}
}
