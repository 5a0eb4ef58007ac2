package ioam

import (
	"bytes"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// For any bytes there is no panic. An error names a byte of the packet, or the missing one behind it, and leaves no
// value. The nodes of a whole trace encode back to the same bytes, except for values without a place.
func FuzzRead(f *testing.F) {
	b := vector(f, "ioam-trace")
	f.Add(b, len(b))
	f.Add(b[:90], len(b))
	for _, name := range []string{"ioam-opaque", "ioam-wide", "ioam-dex", "ioam-e2e", "ioam-pot"} {
		b := packetWith(f, vector(f, name), vector(f, "ioam-dex"))
		f.Add(b, len(b))
	}
	frames(f, "ioam6-linux", func(number uint64, _ int64, b []byte) {
		if number <= 7 {
			f.Add(b[14:], len(b)-14)
		}
	})
	f.Fuzz(func(t *testing.T, b []byte, length int) {
		length = max(length, len(b))
		var p packet.Packet
		p.Frame(packet.LinkRaw, b, length)
		var batch decode.Batch
		if n := (IPv6{}).Read(&batch, &p, b); n != len(batch.Reports) {
			t.Fatalf("%d of %d reports", n, len(batch.Reports))
		}
		var inside decode.Report
		found := (IPv6{}).ReadReport(&inside, &p, b)
		isTrace := func(r *decode.Report) bool { return r.Kind == decode.KindTrace }
		if slices.ContainsFunc(batch.Reports, isTrace) && !found || found && isTrace(&inside) &&
			!slices.ContainsFunc(batch.Reports, func(r *decode.Report) bool {
				return isTrace(r) && slices.Equal(r.Hops, inside.Hops) && r.Flags == inside.Flags
			}) {
			t.Fatalf("%x: in a report %v, %+v", b, found, inside)
		}
		for _, r := range batch.Reports {
			if r.Err.Reason != 0 {
				if r.Err.Offset < 0 || r.Err.Offset > length || len(r.Hops) > 0 || r.AddRare().IOAM.Has != 0 || r.Flags != 0 {
					t.Fatalf("%x: %+v", b, r)
				}
				continue
			}
			if len(r.Hops) != len(r.AddRare().IOAM.Nodes) {
				t.Fatalf("%d hops, %d nodes", len(r.Hops), len(r.AddRare().IOAM.Nodes))
			}
			kind := r.AddRare().IOAM.TraceType
			if r.Kind != decode.KindTrace || r.Flags&decode.Truncated != 0 || kind&(BitChecksum|undefined) != 0 ||
				kind&BitNodeID != 0 && kind&BitNodeIDWide != 0 { // they may differ in the hop limit
				continue
			}
			var stack []byte
			for i := len(r.Hops) - 1; i >= 0; i-- {
				var err error
				if stack, err = AppendNode(stack, kind, &r.Hops[i], &r.AddRare().IOAM.Nodes[i]); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Contains(b, stack) {
				t.Fatalf("%x came back as %x", b, stack)
			}
		}
	})
}
