package srint

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// pathHas are the values of a whole INT-path label. All ones in it are values.
const pathHas = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopIngressTime |
	decode.HopEnqTime | decode.HopQueueOccupancy | decode.HopQueueDelay | decode.HopDeqOccupancy

// DecodePath reads an INT-path probe and adds route, action id and hops to r, whose flow the caller has read from the
// headers before it. The caller has also rejected fragments and IPv4 options ("fragment", "options": switches that
// forward these probes read fixed places).
//
// The bytes in udp begin with the UDP header and end where the capture ends or earlier. By the IP header UDP has
// length bytes, which is more than len(udp) when the capture was cut. Offsets of errors count from base, the place of
// udp[0] in the frame. The values in r alias udp.
//
// A UDP length that is no multiple of labels is an error, unless lenient is set. The reference receiver ignores up to
// 21 bytes behind the last whole label and reads the action id there. So does DecodePath if lenient.
func DecodePath(r *decode.Report, udp []byte, length, base int, lenient bool) {
	r.Format, r.Kind = decode.INTPath, decode.KindProbe
	reject := func(why decode.Reason) { r.Fail(decode.INTPath, "udp_length", base+4, why) }
	udp = udp[:min(len(udp), max(length, 0))] // the rest is a trailer
	if len(udp) < 6 {
		if length < udpHeader {
			reject(decode.Short)
		} else {
			r.Flags |= decode.Truncated
		}
		return
	}
	size := int(binary.BigEndian.Uint16(udp[4:]))
	if size == 0 { // no length, as with segmentation offload
		size = length
	}
	if size > length {
		reject(decode.BadLength)
		return
	}
	if why := pathPayload(r, udp[min(len(udp), udpHeader):], size-udpHeader, lenient); why != 0 {
		reject(why)
	}
}

// DecodePathPayload is DecodePath for a probe that a socket received. The UDP payload has length bytes, of which
// payload is the part that fits the buffer. Offsets of errors count from payload[0].
func DecodePathPayload(r *decode.Report, payload []byte, length int, lenient bool) {
	r.Format, r.Kind = decode.INTPath, decode.KindProbe
	if why := pathPayload(r, payload, length, lenient); why != 0 {
		r.Fail(decode.INTPath, "udp_length", len(payload), why)
	}
}

// pathPayload reads a payload of size bytes, of which b were captured.
func pathPayload(r *decode.Report, b []byte, size int, lenient bool) decode.Reason {
	const fixed = pathFixed - udpHeader
	labels := (size - fixed) / labelLen
	switch {
	case size < fixed:
		return decode.Short
	case (size-fixed)%labelLen != 0 && !lenient:
		return decode.BadStack
	case labels > MaxPathHops:
		return decode.BadCount
	}
	const first = srListLen
	r.Announced = uint8(labels)
	action := first + labels*labelLen
	b = b[:min(len(b), action+actionIDLen)]
	if len(b) < action+actionIDLen {
		r.Flags |= decode.Truncated
	} else {
		r.ActionID = binary.BigEndian.Uint32(b[action:])
		r.Has |= decode.HasActionID
	}
	if len(b) < first {
		return 0
	}
	if list := b[:first:first]; !zero(list) {
		r.SRList = list
		r.Has |= decode.HasSRList
	}
	// Newest label first on the wire, so the first hop is the last one. A cut removes the first hops.
	stack := b[first:min(len(b), action)]
	whole := len(stack) / labelLen
	if rest := stack[whole*labelLen:]; len(rest) > 0 {
		var label [labelLen]byte
		copy(label[:], rest)
		h := r.AddHop()
		readLabel(h, &label)
		dropBehind(h, pathEnds[:], len(rest)*8)
	}
	hops := r.Grow(whole)
	hops = hops[len(hops)-whole:]
	for i := range hops {
		hops[i] = decode.Hop{}
		readLabel(&hops[i], (*[labelLen]byte)(stack[(whole-1-i)*labelLen:]))
	}
	return 0
}

// readLabel reads a label in bits: device 8, ingress port 9, egress port 9, ingress time 48, enqueue time 32, depth
// at enqueue 19. Then follow time in the queue 32, depth at dequeue 19. The times are the switch's own.
func readLabel(h *decode.Hop, b *[labelLen]byte) {
	be := binary.BigEndian
	w0, w1, w2 := be.Uint64(b[0:]), be.Uint64(b[8:]), be.Uint64(b[14:]) // bits 0 to 63, 64 to 127, 112 to 175
	h.Has, h.TimeBits = pathHas, 48
	h.NodeID = uint32(w0 >> 56)
	h.IngressIf = uint16(w0 >> 47 & 0x1ff)
	h.EgressIf = uint16(w0 >> 38 & 0x1ff)
	h.IngressTime = w0<<10&(1<<48-1) | w1>>54
	h.EnqTime = uint32(w1 >> 22)
	h.QueueOccupancy = uint32(w1 >> 3 & 0x7ffff)
	h.QueueDelay = uint32(w1)<<29 | uint32(w2>>19)&(1<<29-1)
	h.DeqOccupancy = uint32(w2 & 0x7ffff)
}

// end is the bit of a label at which a value ends.
type end struct {
	bit   int
	field decode.HopField
}

var pathEnds = [...]end{
	{8, decode.HopNodeID}, {17, decode.HopIngressIf}, {26, decode.HopEgressIf}, {74, decode.HopIngressTime},
	{106, decode.HopEnqTime}, {125, decode.HopQueueOccupancy}, {157, decode.HopQueueDelay}, {176, decode.HopDeqOccupancy},
}

// dropBehind makes the values of h absent that end behind bit n of a label that was cut there.
func dropBehind(h *decode.Hop, ends []end, n int) {
	for _, e := range ends {
		if e.bit > n {
			h.Drop(e.field)
		}
	}
}

// zero reports whether all 64 bytes of a route are 0.
func zero(list []byte) bool {
	var or uint64
	for ; len(list) >= 8; list = list[8:] {
		or |= binary.NativeEndian.Uint64(list)
	}
	return or == 0
}
