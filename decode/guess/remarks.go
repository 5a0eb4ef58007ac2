package guess

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/decode"
)

// Remarks counts, by exporter, the content of reports that is in no statistics, or that no rule reads. It is for any
// number of goroutines.
type Remarks struct {
	// First is called with each remark about an exporter when it is counted for the first time; nil is not.
	First func(*Remark)

	mu    sync.Mutex
	known map[remarkKey]uint64
	more  uint64 // of those for which there was no place
}

type remarkKey struct {
	src  decode.Addr // zero for packets of the network
	what decode.Remark
}

// maxRemarks bounds how many pairs of exporter and remark are counted one by one.
const maxRemarks = 4096

// See counts the remarks of a report.
func (m *Remarks) See(r *decode.Report) {
	if n := r.Unset(); n > 0 {
		m.Add(r.Exporter, decode.RemarkUnset, n)
	}
	nameless := uint64(0)
	for i := range r.Hops {
		if r.Hops[i].Has&decode.HopNodeID == 0 {
			nameless++
		}
	}
	if nameless > 0 {
		m.Add(r.Exporter, decode.RemarkNameless, nameless)
	}
	for set := r.Remarks &^ decode.RemarkNameless; set != 0; set &= set - 1 {
		m.Add(r.Exporter, decode.Remark(1)<<bits.TrailingZeros16(uint16(set)), 1)
	}
}

// Add counts n times one remark about an exporter.
func (m *Remarks) Add(src decode.Addr, what decode.Remark, n uint64) {
	if m.add(remarkKey{src, what}, n) && m.First != nil {
		m.First(&Remark{src, what, n})
	}
}

func (m *Remarks) add(k remarkKey, n uint64) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[remarkKey]uint64{}
	}
	if first = m.known[k] == 0; first && len(m.known) >= maxRemarks {
		m.more += n
		return false
	}
	m.known[k] += n
	return first
}

// Remark is a note on one exporter.
type Remark struct {
	Src   decode.Addr // zero for packets of the network
	What  decode.Remark
	Count uint64
}

// List returns all remarks in the order of addresses.
func (m *Remarks) List() (list []Remark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, n := range m.known {
		list = append(list, Remark{k.src, k.what, n})
	}
	slices.SortFunc(list, func(a, b Remark) int { return cmp.Or(a.Src.Compare(b.Src), cmp.Compare(a.What, b.What)) })
	if m.more > 0 {
		list = append(list, Remark{Count: m.more})
	}
	return list
}

// remarks are the names and the texts of remarks. Several remarks may share one.
var remarks = map[decode.Remark]struct{ name, unit, one, several string }{
	decode.RemarkCopy: {"copies", "report", "came before, with the same sequence number and the same bytes: it is a copy, and does not count",
		"came before, with the same sequence numbers and the same bytes: they are copies, and do not count"},
	decode.RemarkUnset: {"unset-times", "hop", "has a time that was not set, or that cannot be: it gives no latency",
		"have times that were not set, or that cannot be: they give no latency"},
	decode.RemarkUnflagged: {"unflagged-int", "report", "has its flag F not set, though its packet carries INT: profile " + UnflaggedProfile + " reads it",
		"have their flag F not set, though their packets carry INT: profile " + UnflaggedProfile + " reads it"},
	decode.RemarkStackInMX: {"stack-in-mx", "packet", "has a stack of INT-MD under a shim of INT-MX, where domain 0 has nothing: profile " + StackInMXProfile + " reads it",
		"have a stack of INT-MD under a shim of INT-MX, where domain 0 has nothing: profile " + StackInMXProfile + " reads it"},
	decode.RemarkNameless: {"nameless-hops", "hop", "names no node: it counts by its exporter and its place in the report, on no path", "name no node: they count by their exporter and their place in the report, on no path"},
	decode.RemarkMoreData: {"more-data", "report", "holds data beside what is read of it, of a domain or of a type that is not defined: decode shows them as unknown",
		"hold data beside what is read of them, of a domain or of a type that is not defined: decode shows them as unknown"},
	decode.RemarkAlike: {"alike", "report", "has the bytes of one a moment before, and nothing proves that it is a copy: it counts",
		"have the bytes of others a moment before, and nothing proves that they are copies: they count"},
	decode.RemarkPathDelay: {"unset-delays", "record", "has a delay on the way that was not set, or that cannot be: it is left out",
		"have delays on the way that were not set, or that cannot be: they are left out"},
	decode.RemarkShort: {"short-frames", "report", "ends where the capture cut its frame, before all of its telemetry: capture whole frames (tcpdump -s 0)",
		"end where the capture cut their frames, before all of their telemetry: capture whole frames (tcpdump -s 0)"},
	decode.RemarkDomainData: {"domain-data", "report", "holds data that are specific to a domain, which no rule reads; decode shows them as unknown. It names no hop",
		"hold data that are specific to a domain, which no rule reads; decode shows them as unknown. They name no hop"},
}

// The profiles that remarks name.
const (
	UnflaggedProfile = "auto-unflagged"
	StackInMXProfile = "p4-int-mandaryoshi"
)

// Name is the name of a remark.
func (m *Remark) Name() string {
	if x, ok := remarks[m.What]; ok {
		return x.name
	}
	return "more"
}

// String returns a remark in a sentence.
func (m *Remark) String() string {
	x, ok := remarks[m.What]
	if !ok {
		return fmt.Sprintf("%d more remarks, for which there was no place", m.Count)
	}
	unit, verb := x.unit, x.one
	if m.Count != 1 {
		unit, verb = unit+"s", x.several
	}
	of := ""
	if m.Src != (decode.Addr{}) {
		of = " of " + m.Src.String()
	}
	return fmt.Sprintf("%d %s%s %s", m.Count, unit, of, verb)
}
