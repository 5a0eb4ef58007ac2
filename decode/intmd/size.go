package intmd

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

const (
	maxHopWords = 31  // Hop ML and Ins Cnt have 5 bits
	maxLength   = 255 // words in the shim's length
)

// StackBytes returns how many bytes INT of this dialect adds to a packet. The header bytes are the shim, the header
// behind it and the bytes after the stack. Each hop adds perHop bytes, the metadata that bitmap requests. A packet
// with n hops is longer by header + n * perHop. The dialect is INT-MD over TCP or UDP in the newest version that o
// accepts, in the first of its domains. Marks with bytes of their own, such as a UDP header in front, are not
// counted.
func (o *Options) StackBytes(bitmap uint16) (header, perHop int, err error) {
	h, err := o.header(bitmap)
	if err != nil {
		return 0, 0, err
	}
	return h.Len() + o.tail(h.Version), 4 * h.HopWords(), nil
}

// MaxHops returns how many hops find room in a packet that has room bytes for INT, by the bytes of
// [Options.StackBytes]. The length field of the shim cannot count more than 255 words. It is 0 where not even one
// fits.
func (o *Options) MaxHops(bitmap uint16, room int) (int, error) {
	header, perHop, err := o.StackBytes(bitmap)
	if err != nil {
		return 0, err
	}
	counted := 4 * maxLength
	if o.Versions&V21 != 0 {
		counted += shimLen // which the length does not count
	}
	return max(0, min(room, counted)-header) / perHop, nil
}

// header is the header that a source node of this dialect writes.
func (o *Options) header(bitmap uint16) (h Header, err error) {
	h.Instructions = bitmap
	switch {
	case o.Versions&V21 != 0:
		h.Version = decode.V21
		if o.LeastFirst {
			h.Layout = packet.INT2Reversed
		} else if len(o.Domains) > 0 {
			h.DomainID, h.Layout = o.Domains[0].ID, o.Domains[0].Layout
		}
	case o.Versions&V10 != 0:
		h.Version = decode.V10
		if o.WideTimes {
			h.Layout = packet.INT10Wide
		}
		if o.WideTimes && bitmap&0xf000 == 0x3000 {
			return h, fmt.Errorf("instruction bitmap %#04x: this dialect writes another width than it announces when latency and queue are asked for without node and ports", bitmap)
		}
	case o.Versions&V05 != 0:
		h.Version = decode.V05
	default:
		return h, errors.New("the dialect has no INT in packets")
	}
	switch words := h.HopWords(); {
	case words == 0:
		return h, errors.New("instruction bitmap 0x0000 asks for nothing")
	case words > maxHopWords:
		return h, fmt.Errorf("instruction bitmap %#04x: a hop has %d words, the header can announce %d at most", bitmap, words, maxHopWords)
	}
	return h, nil
}

// tail is the size of the bytes behind the stack.
func (o *Options) tail(v decode.Version) int {
	switch {
	case v != decode.V05:
		return 0
	case o.HostINT:
		return tailLen + 4 // a sequence number
	}
	return tailLen
}
