package plain

import (
	"bytes"
	"testing"

	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
)

// Payloads returns what is in the UDP datagrams of a capture.
func Payloads(t testing.TB, file string) (list [][]byte) {
	t.Helper()
	r, err := pcapfile.OpenContext(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var in ingest.Batch
	for {
		err := r.ReadBatch(&in, 64)
		for i := range in.Frames {
			var p packet.Packet
			f := &in.Frames[i]
			p.Frame(f.Link, f.Data, f.Length)
			list = append(list, bytes.Clone(f.Data[p.L4+packet.UDPLen:min(len(f.Data), p.UDPEnd(f.Data))]))
		}
		if err != nil {
			return list
		}
	}
}
