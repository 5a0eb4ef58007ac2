package demux

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// table is a profile resolved: which reader gets which packets. It is made with its Decoder, so that a packet costs a
// search in lists that are empty or short.
type table struct {
	reports  []uint16 // UDP destination ports of telemetry reports
	ports    []entry  // by UDP destination port
	types    []entry  // by EtherType, of frames without an IP header
	anywhere []entry  // every packet with an IP header
	payload  packet.PayloadReader
	inside   []packet.ReportReader // of packets in reports
	alone    bool                  // there are no reports and no INT
}

// entry is one line of the table.
type entry struct {
	numbers []uint16 // ports or EtherTypes
	reader  packet.Reader
}

// resolve makes the table of p. A format that is exclusive disables all others.
func resolve(p *Profile) (t table) {
	for _, f := range p.Formats {
		if w := f.Where(); w.Alone {
			t = table{alone: true}
			t.add(&w, f.NewReader())
			return t
		}
	}
	t.reports = p.ReportPorts
	for _, f := range p.Formats {
		w := f.Where()
		t.add(&w, f.NewReader())
	}
	return t
}

func (t *table) add(w *packet.Where, r packet.Reader) {
	if len(w.Ports) > 0 {
		t.ports = append(t.ports, entry{w.Ports, r})
	}
	if len(w.EtherTypes) > 0 {
		t.types = append(t.types, entry{w.EtherTypes, r})
	}
	if w.Any {
		t.anywhere = append(t.anywhere, entry{nil, r})
	}
	if p, ok := r.(packet.PayloadReader); ok {
		t.payload = p
	}
	if x, ok := r.(packet.ReportReader); ok {
		t.inside = append(t.inside, x)
	}
}

// offer calls the readers of a list for the number of p, until one finds a report.
func (d *Decoder) offer(list []entry, number uint16, b *decode.Batch, p *packet.Packet, data []byte, time int64) (n int) {
	for i := range list {
		e := &list[i]
		if e.numbers != nil && !contains(e.numbers, number) {
			continue
		}
		if n = e.reader.Read(b, p, data); n > 0 {
			d.stamp(b, n, time)
			return n
		}
	}
	return 0
}

// stamp completes the last n reports of b.
func (d *Decoder) stamp(b *decode.Batch, n int, time int64) {
	for _, r := range b.Reports[len(b.Reports)-n:] {
		r.Time, r.Units = time, &d.profile.Units
	}
}
