package loss

import "math/bits"

const (
	ring = 64 // packets that are not settled

	tickBits = 27 // a tick is 2^27 ns, 134 ms
	settleAt = 15 // ticks after which a packet is settled: 2.0 s
)

// Flow compares what two switches report of the packets of a flow. The zero value has seen none. It is 296 bytes.
type Flow struct {
	ids  [ring]uint16
	at   [ring]uint16 // ticks
	seen [2]uint64    // bits by place in the ring: the first switch has reported it, the last one has
	head uint8        // place of the oldest
	n    uint8        // packets in the ring
	_    [2]byte      //
	both bool         // a packet was reported by both switches
	thin uint8        // one of 2^thin packets is compared
	sum  count        // since the last Cut
}

// count holds the numbers of settled packets.
type count struct {
	Packets uint32 // that the first switch reported
	Lost    uint32 // and the last one did not
}

// Settling is the time after which it is settled whether a packet was lost, in ns.
const Settling = settleAt << tickBits

// chosen reports whether packets with an identification are compared.
func (f *Flow) chosen(id uint16) bool {
	return f.thin == 0 || uint32(id)*0x9e3779b1>>(32-f.thin) == 0
}

// Entered notes that the first switch has reported a packet.
func (f *Flow) Entered(id uint16, now int64) { f.observe(0, id, now) }

// Left notes that the last switch has reported a packet, or another one that it dropped it: it is no loss without a
// report.
func (f *Flow) Left(id uint16, now int64) { f.observe(1, id, now) }

func (f *Flow) observe(end int, id uint16, now int64) {
	if !f.chosen(id) {
		return
	}
	f.settle(now)
	for i := int(f.n) - 1; i >= 0; i-- {
		if at := (int(f.head) + i) % ring; f.ids[at] == id {
			f.seen[end] |= 1 << at
			if !f.both && f.seen[0]&f.seen[1]>>at&1 != 0 { // nothing follows from those before it
				f.both, f.head, f.n = true, uint8(at), f.n-uint8(i)
			}
			return
		}
	}
	if f.n == ring {
		if f.thinOut(); !f.chosen(id) {
			return
		}
	}
	if f.n == ring { // all of them are chosen again: the oldest is given up
		f.head = (f.head + 1) % ring
		f.n--
	}
	at := (int(f.head) + int(f.n)) % ring
	f.n++
	f.ids[at], f.at[at] = id, uint16(now>>tickBits)
	f.seen[0] &^= 1 << at
	f.seen[1] &^= 1 << at
	f.seen[end] |= 1 << at
}

// thinOut halves the share of packets that are compared, and removes those that are not any more.
func (f *Flow) thinOut() {
	if f.thin < 15 {
		f.thin++
	}
	old := *f
	f.n, f.head, f.seen = 0, 0, [2]uint64{}
	for i := range int(old.n) {
		at := (int(old.head) + i) % ring
		if !f.chosen(old.ids[at]) {
			continue
		}
		f.ids[f.n], f.at[f.n] = old.ids[at], old.at[at]
		f.seen[0] |= old.seen[0] >> at & 1 << f.n
		f.seen[1] |= old.seen[1] >> at & 1 << f.n
		f.n++
	}
}

// settle counts the packets whose time has passed.
func (f *Flow) settle(now int64) {
	tick := uint16(now >> tickBits)
	for ; f.n > 0; f.n-- {
		at := f.head % ring
		if age := int16(tick - f.at[at]); age >= 0 && age < settleAt {
			return
		}
		if f.both && f.seen[0]>>at&1 != 0 {
			f.sum.Packets++
			f.sum.Lost += uint32(^f.seen[1] >> at & 1)
		}
		f.head = (f.head + 1) % ring
	}
}

// Cut returns the count of packets settled since its last call, and starts a new one, at the end of a window.
func (f *Flow) Cut(now int64) count {
	f.settle(now)
	c := f.sum
	f.sum = count{}
	if f.thin > 0 && bits.OnesCount64(f.seen[0]) < ring/4 && f.n < ring/4 {
		f.thin--
	}
	return c
}
