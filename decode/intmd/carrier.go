package intmd

import "encoding/binary"

// Values of the headers that carry INT in a tunnel.
const (
	PortVXLANGPE = 4790 // UDP
	PortGeneve   = 6081 // UDP

	classINT  = 0x0103 // Geneve option class
	nextINT21 = 0x82   // VXLAN-GPE next protocol, INT 2.1
	nextINT20 = 0x80   // INT 2.0
)

// AppendGRE appends a GRE header (RFC 2784) with the protocol number that the domain gave to INT. The shim follows.
func AppendGRE(dst []byte, protocol uint16) []byte {
	return append(dst, 0, 0, byte(protocol>>8), byte(protocol))
}

// AppendVXLANGPE appends a VXLAN-GPE header whose next protocol is INT 2.1. The shim follows.
func AppendVXLANGPE(dst []byte, vni uint32) []byte {
	const instance, nextProtocol = 0x08, 0x04
	dst = append(dst, instance|nextProtocol, 0, 0, nextINT21)
	return binary.BigEndian.AppendUint32(dst, vni<<8)
}

// AppendGeneve appends a Geneve header (RFC 8926) for options bytes of options, that of INT with its shim included.
// Behind the options is a packet of the given EtherType.
func AppendGeneve(dst []byte, vni uint32, options int, etherType uint16) []byte {
	dst = append(dst, byte(options/4), 0, byte(etherType>>8), byte(etherType))
	return binary.BigEndian.AppendUint32(dst, vni<<8)
}

// InVXLANGPE looks for INT in the VXLAN-GPE header at data[p.At], and moves p to the shim. A header that is cut has
// no room behind it.
func (p *Place) InVXLANGPE(data []byte) bool {
	const nextProtocolBit = 0x04
	h := data[min(p.At, len(data)):]
	if len(h) < 4 || h[0]&nextProtocolBit == 0 || h[3] != nextINT21 && h[3] != nextINT20 {
		return false
	}
	p.Carrier, p.At = VXLANGPE, p.At+8
	if len(h) < 8 {
		p.End = 0
	}
	return true
}

// InGeneve looks for INT among the options of the Geneve header at data[p.At], and moves p to it.
func (p *Place) InGeneve(data []byte) bool {
	at := p.At
	if len(data)-at < 8 || data[at]>>6 != 0 { // version
		return false
	}
	options := 4 * int(data[at]&0x3f)
	at += 8
	end := min(at+options, p.End)
	for end-at >= 4 && len(data)-at >= 4 {
		if binary.BigEndian.Uint16(data[at:]) == classINT {
			p.Carrier, p.At, p.End = Geneve, at, end
			return true
		}
		at += 4 + 4*int(data[at+3]&0x1f)
	}
	return false
}

// InGRE looks for INT behind the GRE header (RFC 2784, RFC 2890) at data[p.At], and moves p to the shim.
func (p *Place) InGRE(protocol uint16, data []byte) bool {
	at := p.At
	if len(data)-at < 4 || binary.BigEndian.Uint16(data[at+2:]) != protocol || data[at+1]&7 != 0 {
		return false
	}
	p.Carrier, p.At = GRE, at+4
	for _, bit := range [...]byte{0x80, 0x20, 0x10} { // checksum, key, sequence number
		if data[at]&bit != 0 {
			p.At += 4
		}
	}
	return true
}
