package demux

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
)

// cutReports returns how many of a datagram's reports were read when it was cut at n bytes, and how many were cut
// off.
func cutReports(d *Decoder, datagram []byte, n int) (read, cut int) {
	var b decode.Batch
	d.DatagramCut(&b, decode.AddrFrom4([]byte{10, 0, 0, 5}), datagram[:n], len(datagram), 0)
	for _, r := range b.Reports {
		if r.CutOff() {
			cut++
		} else {
			read++
		}
	}
	return read, cut + int(b.Cut)
}

// A datagram is cut anywhere whose headers have the number of its samples or records. Those that are read and those
// that are counted as cut off are as many as were sent. Without the headers, it counts as one. Below 20 bytes,
// nothing proves its format.
func TestCutOffIsCounted(t *testing.T) {
	const sent = 7
	samples := sflow.AppendDatagram(nil, &sflow.Datagram{IPv: 4, Agent: decode.AddrFrom4([]byte{10, 0, 0, 5}), Seq: 1, Samples: sent})
	headers := len(samples)
	for range sent {
		samples = sflow.AppendSample(samples, &sflow.Sample{Kind: sflow.Discard, Reason: 3, Index: 1})
	}
	message := &ipfix.Message{Version: ipfix.V10, Time: 1_700_000_000, Domain: 1}
	templates := ipfix.AppendMessage(nil, message, func(b []byte) []byte {
		return ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return append(b, 1, 0, 0, 1, 0, 8, 0, 4) })
	})
	records := ipfix.AppendMessage(nil, message, func(b []byte) []byte {
		return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte {
			for i := range byte(sent) {
				b = append(b, 10, 0, 0, i)
			}
			return b
		})
	})
	for _, c := range []struct {
		name     string
		first    []byte
		datagram []byte
		headers  int // bytes of those that say how much there is
	}{
		{"sFlow", nil, samples, headers},
		{"IPFIX", templates, records, 20},
	} {
		d := newCorrecting(Profile{Name: "all", SFlow: true, IPFIX: true})
		if c.first != nil {
			cutReports(d, c.first, len(c.first))
		}
		for n := len(c.datagram); n >= 20; n-- {
			want := sent
			if n < c.headers {
				want = 1
			}
			if read, cut := cutReports(d, c.datagram, n); read+cut != want || (cut > 0) != (n < len(c.datagram)) {
				t.Errorf("%s cut at %d of %d: %d read, %d cut off, want %d together", c.name, n, len(c.datagram), read, cut, want)
			}
		}
	}
}

// A number of samples that a datagram has no room for is not believed.
func TestCutOffIsBounded(t *testing.T) {
	b := sflow.AppendDatagram(nil, &sflow.Datagram{IPv: 4, Seq: 1, Samples: 1<<32 - 1})
	datagram := append(b, make([]byte, 800)...)
	if read, cut := cutReports(newCorrecting(Profile{Name: "all", SFlow: true}), datagram, len(b)); read != 0 || cut != 100 {
		t.Errorf("%d read, %d cut off, want 100", read, cut)
	}
}
