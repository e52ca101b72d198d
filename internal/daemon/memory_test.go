package daemon_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/tracon-go/tracon/admin"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/internal/daemon"
	"github.com/tracon-go/tracon/skill"
)

const largest = 64 << 10 // of a file of the skills whose memory is measured

// A meter tells the most that was alive, beyond what was at its start, whenever a
// file went past it. What is garbage does not count: how much of it there is depends
// on the collector.
type meter struct{ base, peak uint64 }

func newMeter() *meter { return &meter{base: alive()} }

func alive() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (m *meter) look() {
	if now := alive(); now > m.base {
		m.peak = max(m.peak, now-m.base)
	}
}

// keeper looks whenever a file was read, and whenever one is read again.
func (m *meter) keeper(k skill.Keeper) skill.Keeper { return metered{k, m} }

type metered struct {
	skill.Keeper
	m *meter
}

func (k metered) Add(path string, data []byte) error {
	err := k.Keeper.Add(path, data)
	k.m.look()
	return err
}

func (k metered) Content(declaration []byte) (bundle.Content, error) {
	c, err := k.Keeper.Content(declaration)
	if err != nil {
		return nil, err
	}
	return k.m.content(c), nil
}

func (m *meter) content(c bundle.Content) bundle.Content { return meteredContent{c, m} }

type meteredContent struct {
	bundle.Content
	m *meter
}

func (c meteredContent) ReadFile(path string) ([]byte, error) {
	data, err := c.Content.ReadFile(path)
	c.m.look()
	return data, err
}

// evenFolder writes a skill of files that are as large as the largest, no two alike.
func evenFolder(tb testing.TB, folder string, sum int) {
	tb.Helper()
	write(tb, filepath.Join(folder, "SKILL.md"), front)
	data := make([]byte, largest)
	for i := range sum/largest - 1 {
		binary.BigEndian.PutUint64(data, uint64(i)+1)
		write(tb, filepath.Join(folder, fmt.Sprintf("assets/%02d/file-%04d.bin", i%40, i)), string(data))
	}
}

// importFrom imports a folder or a zip file as the command line does, and tells the
// most that was alive.
func importFrom(tb testing.TB, h *daemon.House, tenant, source string) (v admin.Version, peak uint64) {
	tb.Helper()
	m := newMeter()
	aside := h.Spool()
	defer aside.Close()
	o, c, err := readInto(source, m.keeper(aside))
	if err == nil {
		v, err = h.Admin.Import(tb.Context(), admin.Importing{Actor: "op", Tenant: tenant, Skill: o.Name, Content: c})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return v, m.peak
}

func readInto(source string, k skill.Keeper) (skill.Outline, bundle.Content, error) {
	f, err := os.Open(source)
	if err != nil {
		return skill.Outline{}, nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return skill.Outline{}, nil, err
	case info.IsDir():
		return skill.ReadInto(source, bundle.Limits{}, k)
	default:
		return skill.ReadZipInto(f, info.Size(), bundle.Limits{}, k)
	}
}

func writeZip(tb testing.TB, path string, c bundle.Content) {
	tb.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = skill.WriteZip(f, c)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// A skill that is imported, exported or compared is never in memory whole: what is
// alive follows the largest file, and not their sum.
func TestMemoryFollowsTheLargestFile(t *testing.T) {
	const sum = 8 << 20
	const most = 16 * largest // an eighth of sum; what is said of each file is a part of it
	h, dir := open(t, map[string]string{"s/SKILL.md": front})
	folder, archive := filepath.Join(dir, "even"), filepath.Join(dir, "even.zip")
	evenFolder(t, folder, sum)
	within := func(what string, peak uint64) {
		t.Helper()
		t.Logf("%s: %d KiB were alive", what, peak>>10)
		if peak > most {
			t.Errorf("%s: %d bytes were alive at once, of a skill of %d with files of %d; want at most %d", what, peak, sum, largest, most)
		}
	}

	// The meter sees what is held.
	m := newMeter()
	_, held, err := readInto(folder, m.keeper(bundle.NewBuilder(bundle.Limits{})))
	if err != nil || m.peak < sum/2 {
		t.Fatalf("in memory %d bytes were alive, %v; want more than half of %d", m.peak, err, sum)
	}
	writeZip(t, archive, held)
	digest := held.Listing().Digest()
	held = nil

	for tenant, source := range map[string]string{"folder": folder, "zip": archive} {
		v, peak := importFrom(t, h, tenant, source)
		if v.Digest != digest {
			t.Errorf("%s was imported as %s, want %s", source, v.Digest, digest)
		}
		within("importing "+filepath.Base(source), peak)
	}
	if left, err := filepath.Glob(filepath.Join(h.Config.Data, "import-*")); err != nil || len(left) != 0 {
		t.Errorf("importing left %v behind, %v", left, err)
	}

	kept, err := h.Store.Files(t.Context(), "zip", digest)
	if err != nil {
		t.Fatal(err)
	}
	m = newMeter()
	if err := skill.WriteZip(io.Discard, m.content(kept)); err != nil {
		t.Fatal(err)
	}
	within("writing a zip file", m.peak)
	m = newMeter()
	if err := skill.WriteFolder(filepath.Join(dir, "out"), m.content(kept)); err != nil {
		t.Fatal(err)
	}
	within("writing a folder", m.peak)
	m = newMeter()
	n := 0
	for c, err := range bundle.Changes(m.content(kept), bundle.Bundle{}) {
		if err != nil || c.Kind() != "removed" {
			t.Fatal(c.Kind(), err)
		}
		n++
	}
	if n != sum/largest {
		t.Errorf("%d changes, want %d", n, sum/largest)
	}
	within("comparing", m.peak)
}

// BenchmarkImportMemory imports skills of one largest file, 64 KiB, and of rising
// sums. The metric alive-KiB must stay where it is.
func BenchmarkImportMemory(b *testing.B) {
	for _, sum := range []int{1 << 20, 8 << 20, 32 << 20} {
		b.Run(fmt.Sprintf("sum=%dMiB", sum>>20), func(b *testing.B) {
			h, _ := bigFolder(b, 1)
			folder := filepath.Join(b.TempDir(), "even")
			evenFolder(b, folder, sum)
			var peak uint64
			for i := 0; b.Loop(); i++ {
				_, p := importFrom(b, h, fmt.Sprint("t", i), folder)
				peak = max(peak, p)
			}
			b.ReportMetric(float64(peak>>10), "alive-KiB")
			b.ReportMetric(0, "ns/op") // of the collections, mostly
		})
	}
}
