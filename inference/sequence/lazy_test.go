package sequence

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// TestObserveLazy holds that a record in its short form counts as its report does, with nodes and without, with numbers
// and without.
func TestObserveLazy(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	shapes := []decode.Shape{
		{Common: decode.Report{Version: decode.V20, Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq, SeqBits: 22, FirstOfGroup: true}},
		{Common: decode.Report{Version: decode.V10, Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq, SeqBits: 32, FirstOfGroup: true}},
		{Common: decode.Report{Version: decode.V05, Has: decode.HasExporter | decode.HasHWID | decode.HasSeq, SeqBits: 32, FirstOfGroup: true}},
		{Common: decode.Report{Version: decode.V05, Has: decode.HasExporter | decode.HasHWID}},
		{Common: decode.Report{Version: decode.V20, Has: decode.HasNodeID}},
		{Common: decode.Report{Version: decode.V20, Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq, SeqBits: 22}},
	}
	for i := range shapes {
		shapes[i].Common.Kind = decode.KindStack
		shapes[i].Blocks = func([]decode.Hop, []byte, int) {}
	}
	cfg := DefaultConfig()
	cfg.MaxExporters = 300 // some find no place
	records, reports := New(cfg, 1), New(cfg, 1)
	var seq [40]uint32
	for at := range int64(100_000) {
		node := rng.IntN(len(seq))
		r := decode.Lazy{
			Time: at, Shape: &shapes[rng.IntN(len(shapes))], Exporter: decode.AddrFrom4([]byte{10, 0, 0, byte(rng.IntN(5))}),
			To: uint64(rng.IntN(2)), NodeID: uint32(node), HWID: uint8(rng.IntN(2)), Seq: seq[node],
		}
		if r.Shape.Common.Has&decode.HasNodeID == 0 {
			r.NodeID = 0
		}
		if seq[node]++; rng.IntN(50) == 0 {
			seq[node] += uint32(rng.IntN(5))
		}
		records.ObserveLazy(&r)
		reports.Observe(r.Report())
		if at%20_000 == 0 {
			if a, b := records.Cut(nil, at), reports.Cut(nil, at); !reflect.DeepEqual(a, b) {
				t.Fatalf("window %d of records differs from that of reports", at/20_000)
			}
		}
	}
	if a, b := records.Stats(), reports.Stats(); a != b || a.Refused == 0 {
		t.Errorf("%+v, want %+v", a, b)
	}
}
