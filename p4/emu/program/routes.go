package program

import (
	"hash/crc32"

	headers "github.com/hopscope/hopscope/decode/packet"
)

// NextHop is a port, and the MAC addresses of the line behind it.
type NextHop struct {
	Port     uint16
	To, From headers.MAC
}

// Place is a switch among many with hopscope.p4 that share a [Switch]. It computes what differs between them, in place of
// entries, which a large network would have too many of.
type Place interface {
	// NextHops returns the number of the only next hop towards an address of 4 or 16 bytes, -1 for none, or the numbers
	// of several ones, among which flows are spread.
	NextHops(dst []byte) (one int32, several []int32)
	// NextHop returns the one with a number.
	NextHop(number int32) NextHop
	// Salt, Device and Track are parameters of the switch, in place of ingress.forward.salt, egress.device and ingress.watch.
	Salt() uint32
	Device() (node uint32, clock uint64)
	Track() (t Track, ok bool)
	// Entry is the port whose entries are those of another one, in probes, ingress_port, egress_port and queues.
	Entry(port uint16) uint64
	// Register is the number under which the state of a port is kept.
	Register(port uint16) int32
}

// Follow makes a switch with hopscope.p4 take from x what differs between places, whatever its tables hold.
func (s *Switch) Follow(x Place) { s.place = x }

// entry is the key of a port in tables by port.
func (s *Switch) entry(port uint16) uint64 {
	if s.place != nil {
		return s.place.Entry(port)
	}
	return uint64(port)
}

// self returns the node id, and the time on its clock when the switch started.
func (s *Switch) self() (node uint32, clock uint64) {
	if s.place != nil {
		return s.place.Device()
	}
	d := s.device.Find(nil)
	return uint32(d.Arg(0)), d.Arg(1)
}

// compute is choose for computed next hops.
func (c *hopscope) compute(s *Switch, p *Packet) (reason uint8) {
	_, dst, reason := s.hop(p)
	if reason != 0 {
		return reason
	}
	out, several := s.place.NextHops(dst)
	if len(several) > 0 {
		out = several[c.spread(p, s.place.Salt(), uint32(len(several)))]
	}
	if out < 0 {
		return noRoute
	}
	to := s.place.NextHop(out)
	p.Port = to.Port
	copy(p.eth[copy(p.eth, to.To[:]):], to.From[:])
	return 0
}

// spread returns which of several next hops a packet takes.
func (c *hopscope) spread(p *Packet, salt, members uint32) uint32 {
	k := p.key()
	port := k[35:]
	if p.shim != nil && p.shim.npt() == 1 { // as the sender wrote it
		port = p.shim[2:4]
	}
	return Spread(salt, crc32.Update(crcOf(k[:35]), crc32.IEEETable, port), members)
}
