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

// Routes computes next hops in place of entries of forwarding4, forwarding6 and member, which a large network would have too
// many of.
type Routes interface {
	// NextHops returns the number of the only next hop towards an address of 4 or 16 bytes, -1 for none, or the numbers
	// of several ones, among which flows are spread.
	NextHops(dst []byte) (one int32, several []int32)
	// NextHop returns the one with a number.
	NextHop(number int32) NextHop
	// Salt is that of the switch, in place of its table of one.
	Salt() uint32
}

// Follow makes a switch with hopscope.p4 take routes from r, whatever its tables hold.
func (s *Switch) Follow(r Routes) { s.routes = r }

// compute is choose for computed routes.
func (c *hopscope) compute(s *Switch, p *Packet) (reason uint8) {
	_, dst, reason := s.hop(p)
	if reason != 0 {
		return reason
	}
	out, several := s.routes.NextHops(dst)
	if len(several) > 0 {
		out = several[c.spread(p, s.routes.Salt(), uint32(len(several)))]
	}
	if out < 0 {
		return noRoute
	}
	to := s.routes.NextHop(out)
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
