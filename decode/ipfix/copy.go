package ipfix

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// A copy is a message that equals an earlier one byte for byte: it was captured twice, or the network duplicated it.
// Numbers of messages with records move, and records hold times, so that an exporter does not send the same bytes
// twice. One with constant numbers and records without times might.

const (
	// copyWithin is how soon a copy comes, in ns.
	copyWithin = int64(2e9)
	// remembered is how many messages of an exporter are remembered.
	remembered = 32
)

// Numbered is the numbering of a message.
type Numbered struct {
	First   uint32 // number of the message, or of its first record
	Records bool   // its records have numbers
	Message bool   // it has one
}

// Twice is the relation of a message to earlier ones with the same bytes.
type Twice uint8

// The relations.
const (
	Once     Twice = iota // it did not come before
	Copy                  // it counts once
	Doubtful              // its exporter may have sent two
)

// past are the last messages with records of an exporter.
type past struct {
	sums [remembered]uint32
	held [256]uint8 // how many of the sums have these low bits: most new ones have the bits of none
	list [remembered]struct {
		Numbered
		seq, time, domain uint32
		at                int64
	}
	next, used int
}

// alike is how many of the sums have to be compared with sum: none where no low bits are the same.
func (p *past) alike(sum uint32) int {
	if p.held[uint8(sum)] == 0 {
		return 0
	}
	return p.used
}

// twice searches for a message among earlier ones, and records it if it is new. It returns its place, which the
// caller fills in for a new one. For messages without records it is -1.
func (s *Session) twice(m *Message, d *domain, data []byte, now int64) (place int, twice Twice) {
	stamped, records := s.stamped(m, data)
	if !records {
		return -1, Once
	}
	if s.past == nil {
		s.past = new(past)
	}
	p, sum := s.past, decode.Sum(data)
	for i, other := range p.sums[:p.alike(sum)] {
		x := &p.list[i]
		if other == sum && x.seq == m.Seq && x.time == m.Time && x.domain == m.Domain && x.at != 0 && max(now-x.at, x.at-now) <= copyWithin {
			if x.at = now; stamped || d == nil || d.stays <= d.moves {
				return i, Copy
			}
			return i, Doubtful
		}
	}
	if d != nil {
		d.moved(m.Seq)
	}
	i := p.next
	p.next = (i + 1) % remembered
	if p.used == remembered {
		p.held[uint8(p.sums[i])]--
	} else {
		p.used++
	}
	p.held[uint8(sum)]++
	p.sums[i] = sum
	x := &p.list[i]
	x.seq, x.time, x.domain, x.at = m.Seq, m.Time, m.Domain, now
	return i, Once
}

// stamped reports whether the first records of a message hold a time of a millisecond or better, and whether it has any.
func (s *Session) stamped(m *Message, data []byte) (stamped, records bool) {
	be := binary.BigEndian
	at := 16
	if m.Version == V9 {
		at = 20
	}
	for at+4 <= len(data) {
		id, n := be.Uint16(data[at:]), int(be.Uint16(data[at+2:]))
		if id >= 256 {
			t := s.Template(m, id)
			if t == nil {
				return (id == Tomahawk5 || id == Tomahawk6) && s.Empty(), true
			}
			return t.View.timed, true
		}
		if n < 4 {
			break
		}
		at += n
	}
	return false, false
}

// moved notes whether the number of a message with records differs from that of the one before.
func (d *domain) moved(seq uint32) {
	count := &d.moves
	if seq == d.carried {
		count = &d.stays
	}
	if d.carried = seq; !d.carries {
		d.carries = true
		return
	}
	if *count++; *count == 1<<8-1 {
		d.moves, d.stays = d.moves/2, d.stays/2
	}
}
