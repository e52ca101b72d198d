//go:build linux

package hostcase

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// Mounts returns what is mounted where this process sees it: for each the number, which no
// other has, and the place.
func Mounts(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 {
			list = append(list, f[0]+" "+f[4])
		}
	}
	return list
}

// Mounted returns what is mounted now and was not before. What others of this host mount
// is taken away again: it is waited for.
func Mounted(t testing.TB, before []string) (left []string) {
	t.Helper()
	_ = Eventually(func() error {
		left = slices.DeleteFunc(Mounts(t), func(line string) bool { return slices.Contains(before, line) })
		if len(left) > 0 {
			return errors.New("something is mounted")
		}
		return nil
	})
	return left
}
