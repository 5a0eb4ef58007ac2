package program

import "github.com/hopscope/hopscope/p4"

// deliveries is p4/include/delivery.p4: the paths that reports take.
type deliveries struct {
	turn uint16
	free map[uint16]uint64 // by path, in 2^-16 us

	sent, refused map[uint16]uint64 // by path
	withheld      uint64

	share, paths *p4.Rows
	key          [6]byte // of either
}

func newDeliveries() *deliveries {
	return &deliveries{free: map[uint16]uint64{}, sent: map[uint16]uint64{}, refused: map[uint16]uint64{}}
}

func (d *deliveries) bind(t *p4.Store) { d.share, d.paths = t.Rows(p4.ShareName), t.Rows(p4.PathsName) }

// goldenStep is the golden ratio of 2^16.
const goldenStep = 40503

// spread assigns a path to a report of the switch: another collector, and a tag, 0 for none. It is not sent if ok is false.
func (d *deliveries) spread(collector uint8) (to uint8, tag uint16, ok bool) {
	d.turn += goldenStep
	put(d.key[:], 0, d.turn)
	switch r := d.share.Find(d.key[:2]); r.Action {
	case p4.TagAction:
		return uint8(r.Arg(0)), uint16(r.Arg(1)), true
	case p4.WithholdAction:
		d.withheld++
		return 0, 0, false
	}
	return collector, 0, true
}

// deliver sends a report on by its path. It is false for a packet that is none.
func (d *deliveries) deliver(s *Switch, p *Packet) bool {
	copy(d.key[:], p.v4[12:16])
	copy(d.key[4:], p.udp[:2])
	r := d.paths.Find(d.key[:])
	path, port := uint16(0), uint16(r.Arg(0))
	switch r.Action {
	case p4.PassAction:
	case p4.ChargeAction:
		path = uint16(r.Arg(1))
		now, then := s.Now<<16, d.free[path]
		ahead := then - now
		if ahead>>63 == 1 {
			ahead = 0
		}
		if ahead > r.Arg(3)<<16 {
			port = dropPort
		} else {
			d.free[path] = now + ahead + (uint64(get(p.v4, 2))+ethLen)*r.Arg(2)>>8
		}
	case p4.RefuseAction:
		port = dropPort
	default:
		return false
	}
	switch {
	case port == dropPort:
		d.refused[path]++
	case p.v4[8] <= 1:
		port = dropPort // it went round in circles
	default:
		p.v4[8]--
		d.sent[path]++
	}
	p.Port = port
	return true
}

// Count is a cell of a counter of rft, by its name there.
func (s *Switch) Count(name string, cell int) uint64 {
	c, ok := s.program.(*intmd)
	if !ok || c.rft == nil {
		return 0
	}
	switch name {
	case p4.SentName:
		return c.rft.sent[uint16(cell)]
	case p4.RefusedName:
		return c.rft.refused[uint16(cell)]
	case p4.WithheldName:
		return c.rft.withheld
	}
	return 0
}
