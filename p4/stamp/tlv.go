package stamp

import "iter"

// Type is that of an extension, RFC 8972.
type Type uint8

// Extensions that are read here; all others are unrecognised.
const (
	extraPadding      Type = 1
	location          Type = 2
	timestampInfo     Type = 3
	classOfService    Type = 4
	directMeasurement Type = 5
	HMAC              Type = 8
)

// These are the parts of a location. The sender asks with the general type, and zeros. The MAC address is unrecognised:
// no socket of UDP has it.
const (
	destinationIP   Type = 4
	destinationIPv4 Type = 5
	destinationIPv6 Type = 6
	sourceIP        Type = 7
	sourceIPv4      Type = 8
	sourceIPv6      Type = 9
)

// Flags of an extension.
type Flags uint8

// The flags of RFC 8972, section 4. A sender sets Unrecognised, which a reflector that reads the extension clears.
const (
	unrecognised Flags = 1 << 7
	malformed    Flags = 1 << 6
	integrity    Flags = 1 << 5 // the digest of the extensions is wrong
)

// Lengths of values.
const (
	tlvLen    = 4 // of the header
	infoLen   = 4
	cosLen    = 4
	directLen = 12
	placeLen  = 4 // of a location without parts
	addrLen   = 16
)

// tlv is an extension of a packet.
type tlv struct {
	flags Flags
	Type  Type
	At    int    // of the header, in bytes from the beginning of the extensions
	Value []byte // as much as there is
	cut   bool   // the packet ends before the value does
}

// tlvs iterates over the extensions in b. A truncated one is the last one. Up to 3 bytes behind the last one have no
// place for a header and are left out.
func tlvs(b []byte) iter.Seq[tlv] {
	return func(yield func(tlv) bool) {
		for at := 0; at+tlvLen <= len(b); {
			n := int(be.Uint16(b[at+2:]))
			t := tlv{flags: Flags(b[at]), Type: Type(b[at+1]), At: at, cut: at+tlvLen+n > len(b)}
			end := min(at+tlvLen+n, len(b))
			t.Value = b[at+tlvLen : end : end]
			if !yield(t) || t.cut {
				return
			}
			at = end
		}
	}
}

// appendTLV appends an extension as senders write it.
func appendTLV(dst []byte, t Type, value []byte) []byte {
	dst = append(dst, byte(unrecognised), byte(t))
	dst = be.AppendUint16(dst, uint16(len(value)))
	return append(dst, value...)
}

// appendLocation appends the question for addresses and ports as they came to the reflector.
func appendLocation(dst []byte) []byte {
	zero := make([]byte, addrLen)
	parts := appendTLV(appendTLV(zero[:placeLen:placeLen], destinationIP, zero), sourceIP, zero)
	return appendTLV(dst, location, parts)
}

// cos is the value of a class of service.
type cos struct {
	Asked    uint8 // DSCP that the answer is to have (DSCP1)
	arrived  uint8 // DSCP that the request came with (DSCP2)
	ecn      uint8 // that the request came with
	rejected uint8 // 1: the answer has another DSCP than requested (RP)
}

// Decode reads the value.
func (c *cos) Decode(value []byte) (ok bool) {
	if len(value) != cosLen {
		return false
	}
	w := be.Uint32(value)
	*c = cos{uint8(w >> 26), uint8(w >> 20 & 0x3f), uint8(w >> 18 & 3), uint8(w >> 16 & 3)}
	return true
}

// put writes the value.
func (c *cos) put(value []byte) {
	be.PutUint32(value, uint32(c.Asked&0x3f)<<26|uint32(c.arrived&0x3f)<<20|uint32(c.ecn&3)<<18|uint32(c.rejected&3)<<16)
}

// appendCoS appends the wish that the answer has a DSCP, and the question which one came.
func appendCoS(dst []byte, dscp uint8) []byte {
	var v [cosLen]byte
	(&cos{Asked: dscp}).put(v[:])
	return appendTLV(dst, classOfService, v[:])
}

// direct is the value of a direct measurement: counters of the session's packets.
type direct struct{ senderSent, reflectorReceived, reflectorSent uint32 }

// Decode reads the value.
func (d *direct) Decode(value []byte) (ok bool) {
	if len(value) != directLen {
		return false
	}
	*d = direct{be.Uint32(value), be.Uint32(value[4:]), be.Uint32(value[8:])}
	return true
}

// appendDirect appends the sender's counter, and the question for those of the reflector.
func appendDirect(dst []byte, sent uint32) []byte {
	var v [directLen]byte
	be.PutUint32(v[:], sent)
	return appendTLV(dst, directMeasurement, v[:])
}
