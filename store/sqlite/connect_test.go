package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConnections: R16, a commit waits for the disk (synchronous 2 is FULL), in
// WAL mode, and no reading connection can write.
func TestConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracon.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := file{path: path, o: Options{BusyTimeout: DefaultBusyTimeout}}
	writer, err := f.connect(1, asWriter...)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader, err := f.connect(1, asReader...)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, tt := range []struct {
		pragma         string
		writer, reader string
	}{
		{"journal_mode", "wal", "wal"},
		{"synchronous", "2", "2"},
		{"foreign_keys", "1", "1"},
		{"trusted_schema", "0", "0"},
		{"cell_size_check", "1", "1"},
		{"busy_timeout", "10000", "10000"},
		{"query_only", "0", "1"},
		{"application_id", "1416782179", "1416782179"},
	} {
		var w, r string
		if err := writer.QueryRow("PRAGMA " + tt.pragma).Scan(&w); err != nil {
			t.Fatal(err)
		}
		if err := reader.QueryRow("PRAGMA " + tt.pragma).Scan(&r); err != nil {
			t.Fatal(err)
		}
		if w != tt.writer || r != tt.reader {
			t.Errorf("%s is %s for the writer and %s for readers, want %s and %s", tt.pragma, w, r, tt.writer, tt.reader)
		}
	}
	if _, err := reader.Exec(`DELETE FROM leaf`); code(err) == 0 {
		t.Errorf("a reading connection deleted leaves, error %v", err)
	}
}

// TestStill: a file that is read where it lies must not change meanwhile, nor get a
// log beside it; and what does not stand in the file itself is not overlooked.
func TestStill(t *testing.T) {
	for _, end := range beside {
		t.Run("name"+end, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "tracon.db"), reads: true}
			if err := os.WriteFile(f.path, []byte("something"), 0o600); err != nil {
				t.Fatal(err)
			}
			was, err := f.pieces()
			if err != nil || !was.whole() {
				t.Fatalf("pieces: %v, error %v; want the file alone", was, err)
			}
			if err := f.still(was); err != nil {
				t.Fatalf("nothing was changed: %v", err)
			}
			if err := os.WriteFile(f.path+end, []byte("something more"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := f.still(was); err == nil {
				t.Error("a change was not noticed")
			}
			now, err := f.pieces()
			if err != nil || now.whole() != (end == "") {
				t.Errorf("whole is %v, error %v", now.whole(), err)
			}
		})
	}
}
