package congestion

import (
	"math"

	"github.com/hopscope/hopscope/decode/pint"
)

// Sender is a congestion control.
type Sender uint8

const (
	Reno Sender = iota // TCP's
	INT                // HPCC's with the stamps of all hops
	PINT               // HPCC's with PINT's digest
)

func (s *simulation) newLaw(f *simFlow) law {
	if s.sender == Reno {
		r := &reno{window: renoInitial, threshold: math.Inf(1), rto: s.timeout}
		f.window = r.window * float64(s.payload)
		return r
	}
	h := &hpcc{current: s.fullWindow(), utilization: 1}
	h.set(s, f, h.current)
	return h
}

// fullWindow is HPCC's first and largest window, in bytes: what the host's line carries in a base round-trip time.
func (s *simulation) fullWindow() float64 { return s.hostRate / 8 * float64(s.rtt) / second }

// leastWindow is the share of it that a window keeps, as in the published simulation (1 of 100 Gb/s).
const leastWindow = 0.01

// hpcc is HPCC's law with maxStage = 0 (Y. Li and others, HPCC: High Precision Congestion Control, SIGCOMM 2019,
// algorithm 1, and the simulation that its authors published with PINT). A window W follows from the utilisation U of
// the fullest line, W = Wc/(U/η) + W_AI, and packets leave at the rate W/T. The reference Wc is set once in a
// round-trip time, so that no congestion is answered twice.
//
// With INT the sender computes U from the stamps of two packets: the largest over the hops of min(queue, queue
// before)/(B·T) + txRate/B, averaged with the weight τ/T of the time between the two. With PINT a switch does that for
// all packets of a port, and the digest is the largest U. Both are as published: the first feedback of a flow begins
// its first round and sets nothing.
//
// Each digest is rounded for itself. So the reference of a flow gets a random factor of some 2 % a round, while W_AI
// draws it to its fair share by a thousandth: of two flows on a line, one has 0.27 to 0.73 of it at times. With INT both
// stay within 0.002 of a half.
type hpcc struct {
	current     float64 // Wc, bytes
	utilization float64 // U
	update      int32   // the packet whose acknowledgement ends the round
	begun       bool
	before      [maxStamps]stamp
}

func (h *hpcc) acknowledged(s *simulation, f *simFlow, p *simPacket, _ int32) {
	if s.sender == PINT && !p.chosen {
		return
	}
	if !h.begun {
		h.begun, h.update, h.before = true, f.next, p.stamps
		return
	}
	if s.sender == PINT {
		h.utilization = s.code.Decode(uint32(p.digest)) / pint.UtilizationUnit
	} else {
		h.measure(s, f, p)
	}
	w := h.current*s.eta/h.utilization + s.increase
	w = min(max(w, leastWindow*s.fullWindow()), s.fullWindow())
	if p.number > h.update {
		h.current, h.update = w, f.next
	}
	h.set(s, f, w)
}

// measure averages the utilisation of the fullest line, by the stamps since the last acknowledgement.
func (h *hpcc) measure(s *simulation, f *simFlow, p *simPacket) {
	most, tau := 0.0, int64(0)
	for k, port := range f.path[:f.links] {
		was, is := &h.before[k], &p.stamps[k]
		dt := is.at - was.at
		if dt <= 0 {
			continue
		}
		perByte := float64(s.ports[port].perByte)
		u := float64(is.sent-was.sent)*perByte/float64(dt) + float64(min(is.queue, was.queue))*perByte/float64(s.rtt)
		if u > most {
			most, tau = u, dt
		}
	}
	h.before = p.stamps
	weight := float64(min(tau, s.rtt)) / float64(s.rtt)
	h.utilization = h.utilization*(1-weight) + most*weight
}

// set gives the flow a window and its pace.
func (h *hpcc) set(s *simulation, f *simFlow, w float64) {
	f.window, f.pace = w, float64(s.rtt)/w
}

func (h *hpcc) expired(*simulation, *simFlow) {} // no packet is lost

const (
	renoInitial    = 10 // packets: RFC 6928
	renoDuplicates = 3
)

// reno is TCP's congestion control: RFC 5681 with NewReno's recovery (RFC 6582), a retransmission timer by RFC 6298
// and timestamps. Every packet is acknowledged.
type reno struct {
	window, threshold float64 // packets
	duplicates        int
	recovering        bool
	recover           int32 // first packet that had not been sent when the loss was found
	smooth, deviation float64
	rto               int64
}

func (r *reno) acknowledged(s *simulation, f *simFlow, p *simPacket, fresh int32) {
	switch {
	case fresh > 0:
		r.measure(s, p)
		r.duplicates = 0
		switch {
		case r.recovering && f.unacked >= r.recover:
			r.recovering = false
			r.window = r.threshold
		case r.recovering: // another packet was lost
			f.resend = true
			r.window = max(r.window-float64(fresh)+1, 1)
		case r.window < r.threshold:
			r.window++
		default:
			r.window += 1 / r.window
		}
		f.timer = 0
		s.arm(f)
	case r.recovering:
		r.window++
	default:
		if r.duplicates++; r.duplicates == renoDuplicates && f.unacked >= r.recover && f.next > f.unacked {
			r.halve(f)
			r.recovering, r.recover = true, f.next
			r.window = r.threshold + renoDuplicates
			f.resend = true
		}
	}
	f.window = math.Floor(r.window) * float64(s.payload)
}

func (r *reno) halve(f *simFlow) { r.threshold = max(float64(f.next-f.unacked)/2, 2) }

// measure takes a round-trip time.
func (r *reno) measure(s *simulation, p *simPacket) {
	t := float64(s.now - p.began)
	if r.smooth == 0 {
		r.smooth, r.deviation = t, t/2
	} else {
		r.deviation += (math.Abs(t-r.smooth) - r.deviation) / 4
		r.smooth += (t - r.smooth) / 8
	}
	r.rto = max(s.timeout, int64(r.smooth+4*r.deviation))
}

// expired sends all from the first missing packet on again.
func (r *reno) expired(s *simulation, f *simFlow) {
	r.halve(f)
	r.recover = f.next
	r.window, r.recovering, r.duplicates = 1, false, 0
	r.rto = min(2*r.rto, second)
	f.window = float64(s.payload)
	f.next, f.resend = f.unacked, false
}
