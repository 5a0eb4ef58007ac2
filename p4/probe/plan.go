package probe

import (
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/planner"
)

// Plan holds which probes are sent, which way and when. All agents of a network can have the same one: each sends the
// probes that name it.
type Plan struct {
	Epoch           uint32 // from 1; packets carry it, and a later plan has a higher one
	Dialect         Dialect
	Basic, Detailed uint16 // instruction bitmaps
	Probes          []Probe
}

// Probe is one of a plan.
type Probe struct {
	ID        string
	Route     []int         // ports by which it leaves its switches, first switch first
	Interval  time.Duration // between two starts
	Phase     time.Duration // starts are at the times t since 1970 with t mod Interval = Phase
	Detailed  bool          // it carries the detailed bitmap
	Agent     string        // agent that sends it
	Collector string        // whose host takes it back; "" for any
	To        netip.Addr    // address of that host; the zero value leaves it to the sender's settings
}

// Dialect is the width of the metadata of a bitmap.
type Dialect string

// The dialects.
const (
	INT21 Dialect = "int-2.1"
	FANT  Dialect = "fant" // Appl. Sci. 15(2), 892: bits 12 to 14 have 8 bytes, in the domain intmd.FANTDomain
)

// known reports whether d is one.
func (d Dialect) known() bool { return d == INT21 || d == FANT }

// Bitmaps are the usual ones of the dialect: the basic metrics, and the detailed ones in addition. Those of FANT are
// published. Those of INT 2.1 are node, interfaces, latency and queue, and then all that is defined.
func (d Dialect) Bitmaps() (basic, detailed uint16) {
	if d == FANT {
		return 0xf161, 0xffff
	}
	return 0xf000, 0xff80
}

// header is the INT header of a probe.
func (d Dialect) header(bitmap uint16, hops int) intmd.Header {
	h := DialectHeader(d, bitmap)
	h.RemainingHops = uint8(hops)
	return h
}

// HopBytes returns the bytes that a node adds for a bitmap.
func (d Dialect) HopBytes(bitmap uint16) int { return 4 * d.words(bitmap) }

// words is the length of what a node adds for bitmap, in words of 4 bytes.
func (d Dialect) words(bitmap uint16) int {
	if d == FANT {
		return packet.Words(packet.INT2FANT, bitmap)
	}
	return packet.Words(packet.INT2, bitmap)
}

// These are bounds of a plan, whatever the settings are.
const (
	minInterval = 10 * time.Microsecond
	maxInterval = 24 * time.Hour
	maxName     = 253           // of bytes, as of a host
	maxStack    = 4 * (255 - 3) // of INT, by the 8-bit length of its shim
	maxHopWords = 31
	lineBytes   = 24 // preamble, checksum and gap around a frame

	// reportBytes are the headers around a probe in its report: IPv4, UDP, group, report.
	reportBytes = 20 + 8 + 8 + 12
)

// Limits bound what an agent does. They are its own: a plan cannot raise them.
type Limits struct {
	Name         string  // of the agent
	SendBPS      float64 // bits a second that it sends, including the overhead of a frame on a line
	ReceiveBPS   float64 // bits a second of probes that come to it
	Probes       int     // that it sends
	MTU          int     // of an IP packet, on the network and on the way to collectors
	ProbesPerSec float64 // that it sends
}

// Load is the load of a plan on an agent.
type Load struct {
	Sends                  int     // probes
	SendBPS, ReceiveBPS    float64 // on the line
	ProbesPerSecond        float64
	Detailed               int // of the probes that it sends
	longestRoute, Received int // hops of probes that it sends; probes that come back to it
}

// Check returns what is wrong with a plan, and the load that it puts on the agent of l. A plan with any error is
// refused whole.
func (p *Plan) Check(l *Limits) (load Load, err error) {
	var bad planner.Errors
	if p.Epoch == 0 {
		bad.Add("the epoch is 0; the first one is 1")
	}
	if !p.Dialect.known() {
		bad.Add("dialect %.40q is neither %q nor %q", p.Dialect, INT21, FANT)
		return load, bad.Join()
	}
	p.checkBitmap("basic", p.Basic, &bad)
	p.checkBitmap("detailed", p.Detailed, &bad)
	ids := make(map[string]bool, len(p.Probes))
	for k := range p.Probes {
		x := &p.Probes[k]
		if !x.named(&bad) {
			continue
		}
		if ids[x.ID] {
			bad.Add("probe %q is there twice", x.ID)
		}
		ids[x.ID] = true
		if p.checkProbe(x, l, &bad) {
			p.add(x, l, &load)
		}
	}
	over := func(verb string, v float64, unit string, limit float64, key string) {
		if v > limit && !planner.Near(v, limit) {
			bad.Add("agent %s would %s %.6g %s, and its limit is %.6g (%s)", l.Name, verb, v, unit, limit, key)
		}
	}
	over("send", load.SendBPS, "bit/s", l.SendBPS, "send_limit_bps")
	over("receive", load.ReceiveBPS, "bit/s", l.ReceiveBPS, "receive_limit_bps")
	over("send", load.ProbesPerSecond, "probes a second", l.ProbesPerSec, "probes_per_second")
	over("send", float64(load.Sends), "probes", float64(l.Probes), "max_probes")
	return load, bad.Join()
}

// checkBitmap checks what every node would add for a bitmap.
func (p *Plan) checkBitmap(which string, bitmap uint16, bad *planner.Errors) {
	const reserved = 0x007e
	switch w := p.Dialect.words(bitmap); {
	case bitmap&0x8000 == 0:
		bad.Add("the %s bitmap %#04x does not ask for the node id (0x8000), and values without it belong to no node", which, bitmap)
	case p.Dialect == INT21 && bitmap&reserved != 0:
		bad.Add("the %s bitmap %#04x has bits that INT 2.1 reserves (%#04x); the dialect %s has them", which, bitmap, bitmap&reserved, FANT)
	case w > maxHopWords:
		bad.Add("for the %s bitmap %#04x a node adds %d words, and the header counts to %d", which, bitmap, w, maxHopWords)
	}
}

// named reports whether id and names of x are valid. All messages about x contain them, so this is checked first.
func (x *Probe) named(bad *planner.Errors) bool {
	switch {
	case x.ID == "" || len(x.ID) > maxName:
		bad.Add("a probe's id %.40q has not 1 to %d bytes", x.ID, maxName)
	case len(x.Agent) > maxName || len(x.Collector) > maxName:
		bad.Add("probe %q: the name of its agent or collector has more than %d bytes", x.ID, maxName)
	default:
		return true
	}
	return false
}

// checkProbe reports whether x is one that can be sent.
func (p *Plan) checkProbe(x *Probe, l *Limits, bad *planner.Errors) bool {
	before := bad.Len()
	if err := (Slot{x.Interval, x.Phase}).Check(); err != nil {
		bad.Add("probe %q %w", x.ID, err)
	}
	if x.To.IsValid() && !x.To.Unmap().Is4() {
		bad.Add("probe %q goes to %v, and probes are IPv4", x.ID, x.To)
	}
	var room [128]byte
	if _, err := srint.AppendProbe(room[:0], x.Route); err != nil {
		bad.Add("probe %q: %w", x.ID, err)
		return false
	}
	stack := p.stackBytes(x)
	if stack > maxStack {
		bad.Add("probe %q would gather %d bytes over %d hops, and the shim of INT has room for %d", x.ID, stack, len(x.Route), maxStack)
	}
	if size := PacketLen + stack; size > l.MTU-reportBytes {
		bad.Add("probe %q would be an IP packet of %d bytes after %d hops; with the headers of its report that is above the MTU of %d", x.ID, size, len(x.Route), l.MTU)
	}
	return bad.Len() == before
}

// bitmap is the one that x carries.
func (p *Plan) bitmap(x *Probe) uint16 {
	if x.Detailed {
		return p.Detailed
	}
	return p.Basic
}

// stackBytes is the length of the stack of x at the end of its way.
func (p *Plan) stackBytes(x *Probe) int { return 4 * p.Dialect.words(p.bitmap(x)) * len(x.Route) }

// add counts what x makes the agent of l do.
func (p *Plan) add(x *Probe, l *Limits, load *Load) {
	perSecond := float64(time.Second) / float64(x.Interval)
	if x.Agent == l.Name {
		load.Sends++
		load.ProbesPerSecond += perSecond
		load.SendBPS += 8 * float64(frameLen(len(x.Route))+lineBytes) * perSecond
		load.longestRoute = max(load.longestRoute, len(x.Route))
		if x.Detailed {
			load.Detailed++
		}
	}
	if x.Collector == l.Name {
		load.Received++
		load.ReceiveBPS += 8 * float64(EthernetLen+PacketLen+p.stackBytes(x)+lineBytes) * perSecond
	}
}
