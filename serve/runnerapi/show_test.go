package runnerapi

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/wire"
)

// O09, M02: of a stream with gaps each piece is told at the place where the script wrote
// it, for whoever masks secrets goes by where the gaps are. What was lost is counted, also
// what nobody could be shown.
func TestShownAtItsPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := make([]byte, rapid.IntRange(0, 4000).Draw(t, "written"))
		for i := range written {
			written[i] = byte(i ^ i>>8)
		}
		most := rapid.IntRange(1, 5000).Draw(t, "most")
		live := gate.NewLive(0)
		var offsets []int64
		end := int64(0)
		s := &showing{most: most, live: live, show: func(o wire.Output) {
			if o.Offset < end {
				t.Fatalf("a piece at %d, and %d bytes were told before", o.Offset, end)
			}
			end = o.Offset + int64(len(o.Data))
			if len(o.Data) > 0 && (end > int64(len(written)) || !bytes.Equal(o.Data, written[o.Offset:end])) {
				t.Fatalf("%d bytes at %d are not what stands there", len(o.Data), o.Offset)
			}
			offsets = append(offsets, o.Offset)
		}}
		at := 0
		for at < len(written) {
			lost := rapid.IntRange(0, min(50, len(written)-at)).Draw(t, "lost") * rapid.IntRange(0, 1).Draw(t, "any")
			n := rapid.IntRange(0, min(200, len(written)-at-lost)).Draw(t, "n")
			live.Lost(gate.Stdout, int64(lost))
			if n > 0 {
				s.hold(gate.Chunk{Stream: gate.Stdout, Data: written[at+lost : at+lost+n], Lost: int64(lost)})
			} else {
				n = len(written) - at - lost // the last ones are lost
				live.Lost(gate.Stdout, int64(n))
			}
			at += lost + n
			if rapid.Bool().Draw(t, "flush") {
				s.flush()
			}
		}
		s.flush()
		s.end()
		if end != int64(len(written)) {
			t.Fatalf("%d bytes are shown or lost in %v, and %d were written", end, offsets, len(written))
		}
	})
}
