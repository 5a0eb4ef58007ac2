package sequence_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/sequence"
)

// Of the reports that an exporter numbered from 1 to 7, number 3 is lost and number 5 comes twice. Number 6 comes after
// number 7.
func Example() {
	tracker := sequence.New(sequence.DefaultConfig(), 1)
	for _, number := range []uint32{1, 2, 4, 5, 5, 7, 6} {
		tracker.Observe(&decode.Report{
			Version: decode.V20, Exporter: decode.AddrFrom4([]byte{192, 0, 2, 1}), NodeID: 7,
			Seq: number, SeqBits: 22, FirstOfGroup: true,
			Has: decode.HasExporter | decode.HasNodeID | decode.HasSeq,
		})
	}
	tracker.Settle() // nothing can come any more
	for _, e := range tracker.Cut(nil, 10_000_000_000) {
		fmt.Printf("%s: %d reports, %d lost, %d duplicated, %d reordered\n", e.ExporterKey, e.Reports, e.Lost, e.Duplicated, e.Reordered)
	}
	// Output: exporter 192.0.2.1 node 7 hardware 0: 7 reports, 1 lost, 1 duplicated, 1 reordered
}
