package mask

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// aKey has the form of a key, with a checksum that holds. The tests of access hold the
// form to that of real ones.
func aKey() string {
	text := keyPrefix + strings.Repeat("a", keyID) + "_" + strings.Repeat("b", 52)
	return text + letters.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

// O09: what is known to be secret is masked, and nothing else is touched.
func TestBytes(t *testing.T) {
	key := aKey()
	values := map[string]string{"TOKEN": "canary-1234", "LONG": "canary-1234-and-more", "OVER": "1234-xyz", "SAME": "cccccccc", "SHORT": "abc"}
	for _, tt := range []struct {
		name, in, want string
		cut            bool
	}{
		{name: "nothing", in: "no secret: canary-123, tracon_, abc", want: "no secret: canary-123, tracon_, abc"},
		{name: "one", in: "<canary-1234>", want: "<[secret TOKEN]>"},
		{name: "twice side by side", in: "canary-1234canary-1234", want: "[secret TOKEN][secret TOKEN]"},
		{name: "the longer one", in: "canary-1234-and-more!", want: "[secret LONG]!"},
		{name: "two that overlap", in: "canary-1234-xyz!", want: "[secret TOKEN]!"},
		{name: "one that overlaps itself", in: "cccccccccc!", want: "[secret SAME]!"},
		{name: "a key", in: "key=" + key + "\n", want: "key=[tracon key]\n"},
		{name: "a key whose checksum does not hold", in: key[:len(key)-1] + "!", want: key[:len(key)-1] + "!"},
		{name: "the key behind letters", in: "tracon_" + key, want: "tracon_[tracon key]"},
		{name: "bytes that are no text", in: "\xff\x00canary-1234\xff", want: "\xff\x00[secret TOKEN]\xff"},
		{name: "the beginning of one at an end", in: "x canary-12", want: "x canary-12"},
		{name: "the beginning of one at a cut", in: "x canary-12", cut: true, want: "x [secret LONG]"},
		{name: "the beginning of a key at a cut", in: "x " + key[:40], cut: true, want: "x [tracon key]"},
		{name: "a whole one at a cut", in: "x canary-1234", cut: true, want: "x [secret LONG]"},
		{name: "three letters at a cut", in: "x can", cut: true, want: "x can"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(New(values).Bytes([]byte(tt.in), tt.cut)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// O09: however a stream is parted, the same comes out, and no value that is marked. The
// alphabet is small, so that values overlap each other and themselves.
func TestStreamIsTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]byte("ab"))
		values := map[string]string{}
		for i, v := range rapid.SliceOfN(rapid.SliceOfN(letter, Least, 12), 0, 3).Draw(t, "values") {
			values[string(rune('A'+i))] = string(v)
		}
		m := New(values)
		text := rapid.SliceOfN(letter, 0, 80).Draw(t, "text")
		if rapid.Bool().Draw(t, "with a key") {
			text = append(text, aKey()...)
		}
		cut := rapid.Bool().Draw(t, "cut")
		var got []byte
		s := m.Stream()
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got = append(got, s.Write(rest[:n])...)
			rest = rest[n:]
		}
		got = append(got, s.Close(cut)...)
		if want := string(m.Bytes(text, cut)); string(got) != want {
			t.Fatalf("in pieces %q, whole %q", got, want)
		}
		for name, v := range values {
			if strings.Contains(string(got), v) {
				t.Fatalf("%s, %q, stands in %q", name, v, got)
			}
		}
		if strings.Contains(string(got), aKey()) {
			t.Fatalf("the key stands in %q", got)
		}
	})
}

// O09: whatever the bytes are, and wherever they are parted.
func FuzzStream(f *testing.F) {
	f.Add([]byte("canary-1234"), []byte("x canary-1234 y"), 5, false)
	f.Add([]byte("aaaaaaaa"), []byte("aaaaaaaaaaaa"), 9, true)
	f.Add([]byte(aKey()), []byte("tracon_"+aKey()), 30, true)
	f.Fuzz(func(t *testing.T, value, text []byte, at int, cut bool) {
		m := New(map[string]string{"V": string(value)})
		at = min(max(at, 0), len(text))
		s := m.Stream()
		got := string(s.Write(text[:at])) + string(s.Write(text[at:]))
		got += string(s.Close(cut))
		if want := string(m.Bytes(text, cut)); got != want {
			t.Errorf("parted at %d: %q, whole %q", at, got, want)
		}
	})
}
