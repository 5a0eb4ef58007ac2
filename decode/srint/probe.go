package srint

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// probeHas are the values of a whole INT-Probe label. All ones in it are values.
const probeHas = pathHas | decode.HopEgressTime

// DecodeProbe reads an INT-Probe frame behind its EtherType, which is TypeRoute or TypeINT, and adds route and hops
// to r. It reports false, with r unchanged but for its format, if the route leads an ordinary IPv4 packet: no probe.
//
// The bytes in data end where the capture ends; length is how many were on the wire. Offsets of errors count from
// base, the place of data[0] in the frame. The values in r alias data. Bytes behind the labels are Ethernet padding.
func DecodeProbe(r *decode.Report, etherType uint16, data []byte, length, base int) bool {
	r.Format, r.Kind = decode.INTProbe, decode.KindProbe
	at := 0 // of the INT header
	if etherType == TypeRoute {
		n, ok := readRoute(r, data, length, base)
		if n == 0 || !ok {
			return ok
		}
		at = n
	}
	if length < at+2 {
		r.Fail(decode.INTProbe, "int_num", base+min(at+1, length), decode.Short)
		return true
	}
	if len(data) < at+2 {
		r.Flags |= decode.Truncated
		return true
	}
	labels := int(data[at+1])
	if length < at+2+labels*probeLabelLen {
		r.Fail(decode.INTProbe, "int_num", base+at+1, decode.BadCount)
		return true
	}
	stack := data[at+2:]
	if len(stack) < labels*probeLabelLen {
		r.Flags |= decode.Truncated
	} else {
		stack = stack[:labels*probeLabelLen]
	}
	// Newest label first on the wire, so the first hop is the last one. A cut removes the first hops.
	whole := len(stack) / probeLabelLen
	if rest := stack[whole*probeLabelLen:]; len(rest) > 0 {
		var b [probeLabelLen]byte
		copy(b[:], rest)
		h := r.AddHop()
		readProbeLabel(h, &b)
		dropBehind(h, probeEnds[:], len(rest)*8)
	}
	hops := r.Grow(whole)
	hops = hops[len(hops)-whole:]
	for i := range hops {
		hops[i] = decode.Hop{}
		readProbeLabel(&hops[i], (*[probeLabelLen]byte)(stack[(whole-1-i)*probeLabelLen:]))
	}
	return true
}

// readRoute reads the route: reserved 1, sr_length 1 (bytes of these two and of the entries), entries of 2, the type
// of what follows 2. It returns the size of all that; 0 if there is nothing to read behind it, and then false if that
// is because IPv4 follows.
func readRoute(r *decode.Report, data []byte, length, base int) (n int, probe bool) {
	if length < 4 {
		r.Fail(decode.INTProbe, "sr_length", base+min(1, length), decode.Short)
		return 0, true
	}
	if len(data) < 2 {
		r.Flags |= decode.Truncated
		return 0, true
	}
	n = int(data[1])
	if n < 2 || n%2 != 0 || n > 2+2*MaxProbeHops || n+2 > length {
		r.Fail(decode.INTProbe, "sr_length", base+1, decode.BadLength)
		return 0, true
	}
	if len(data) >= n+2 {
		switch binary.BigEndian.Uint16(data[n:]) {
		case TypeINT:
		case typeIPv4:
			return 0, false
		default:
			r.Fail(decode.INTProbe, "type2", base+n, decode.BadType)
		}
	}
	if entries := data[2:min(n, len(data)&^1)]; len(entries) > 0 {
		r.SRPorts = entries
		r.Has |= decode.HasSRPorts
	}
	if r.Err.Reason != 0 {
		return 0, true
	}
	if len(data) < n+2 {
		r.Flags |= decode.Truncated
		return 0, true
	}
	return n + 2, true
}

// readProbeLabel reads a label in bytes: switch id 1, ingress port 1, egress port 1, reserved 1, ingress time 6,
// egress time 6. Then follow enqueue time 4, reserved 1, depth at enqueue 3, time in the queue 4, reserved 1, depth
// at dequeue 3.
func readProbeLabel(h *decode.Hop, b *[probeLabelLen]byte) {
	be := binary.BigEndian
	h.Has, h.TimeBits = probeHas, 48
	h.NodeID = uint32(b[0])
	h.IngressIf = uint16(b[1])
	h.EgressIf = uint16(b[2])
	h.IngressTime = be.Uint64(b[2:]) & (1<<48 - 1)
	h.EgressTime = be.Uint64(b[8:]) & (1<<48 - 1)
	h.EnqTime = be.Uint32(b[16:])
	h.QueueOccupancy = be.Uint32(b[20:]) & 0xffffff
	h.QueueDelay = be.Uint32(b[24:])
	h.DeqOccupancy = be.Uint32(b[28:]) & 0xffffff
}

var probeEnds = [...]end{
	{8, decode.HopNodeID}, {16, decode.HopIngressIf}, {24, decode.HopEgressIf}, {80, decode.HopIngressTime},
	{128, decode.HopEgressTime}, {160, decode.HopEnqTime}, {192, decode.HopQueueOccupancy}, {224, decode.HopQueueDelay},
	{256, decode.HopDeqOccupancy},
}
