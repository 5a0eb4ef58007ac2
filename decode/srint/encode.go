package srint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// The errors of the encoders.
var (
	ErrNoPath   = errors.New("empty path")
	ErrTooLong  = errors.New("path too long")
	ErrPort     = errors.New("port out of range")
	ErrActionID = errors.New("action id beyond 32 bits")
	ErrPacket   = errors.New("not a probe") // a switch's step on bytes that are none
)

// AppendSRList appends the route of an INT-path probe. It is the list of egress ports of the switches, first switch
// first, 1 to 16 each, at most 128. The 64 bytes are one big-endian number of 4-bit entries, port less 1, the first
// in the low bits. There is no end mark: unused entries read as port 1. On error dst is returned as it was.
func AppendSRList(dst []byte, ports []int) ([]byte, error) {
	if err := checkRoute(ports, MaxPathHops, 1, MaxPathPort); err != nil {
		return dst, err
	}
	n := len(dst)
	dst = append(dst, make([]byte, srListLen)...)
	for k, p := range ports {
		dst[n+srListLen-1-k/2] |= byte(p-1) << (k % 2 * 4)
	}
	return dst, nil
}

// AppendPath appends the UDP payload that the sender of an INT-path probe writes: the route and the action id, which
// numbers the measurement round. On error dst is returned as it was.
func AppendPath(dst []byte, ports []int, actionID uint64) ([]byte, error) {
	if actionID>>32 != 0 {
		return dst, fmt.Errorf("%w: %d", ErrActionID, actionID)
	}
	list, err := AppendSRList(dst, ports)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint32(list, uint32(actionID)), nil
}

func checkRoute(ports []int, hops, low, high int) error {
	switch {
	case len(ports) == 0:
		return ErrNoPath
	case len(ports) > hops:
		return fmt.Errorf("%w: %d hops, at most %d", ErrTooLong, len(ports), hops)
	}
	for i, p := range ports {
		if p < low || p > high {
			return fmt.Errorf("%w: hop %d leaves by port %d, not %d to %d", ErrPort, i+1, p, low, high)
		}
	}
	return nil
}

// AppendLabel appends h as a label of INT-path. Values are cut to the width they have there, as a switch does:
// device 8 bits, ports 9, ingress time 48, queue depths 19.
func AppendLabel(dst []byte, h *decode.Hop) []byte {
	be := binary.BigEndian
	in, enq, deq := h.IngressTime&(1<<48-1), uint64(h.QueueOccupancy)&0x7ffff, uint64(h.DeqOccupancy)&0x7ffff
	eg := uint64(h.EgressIf) & 0x1ff
	dst = be.AppendUint64(dst, uint64(uint8(h.NodeID))<<56|uint64(h.IngressIf&0x1ff)<<47|eg<<38|in>>10)
	dst = be.AppendUint64(dst, in<<54|uint64(h.EnqTime)<<22|enq<<3|uint64(h.QueueDelay)>>29)
	// Bits 128 to 175: the low 29 bits of the delay and the depth at dequeue.
	last := uint64(h.QueueDelay)<<19&(1<<48-1) | deq
	dst = be.AppendUint16(dst, uint16(last>>32))
	return be.AppendUint32(dst, uint32(last))
}

// path checks that an INT-path probe has its IPv4 header at frame[ip], and room for another label of grow bytes. It
// returns the place of the UDP header.
func path(frame []byte, ip, grow int) (udp int, err error) {
	const ipHeader = 20
	if ip < 0 || len(frame) < ip+ipHeader+pathFixed || frame[ip] != 0x45 || frame[ip+9] != 17 {
		return 0, fmt.Errorf("%w: no IPv4 and UDP of that size at byte %d", ErrPacket, ip)
	}
	be := binary.BigEndian
	udp = ip + ipHeader
	total, size := int(be.Uint16(frame[ip+2:])), int(be.Uint16(frame[udp+4:]))
	switch {
	case be.Uint16(frame[udp+2:]) != PathPort:
		return 0, fmt.Errorf("%w: UDP port %d", ErrPacket, be.Uint16(frame[udp+2:]))
	case be.Uint16(frame[ip+6:])&0x3fff != 0:
		return 0, fmt.Errorf("%w: fragment", ErrPacket)
	case size < pathFixed || total < ipHeader+size || len(frame) < ip+total:
		return 0, fmt.Errorf("%w: UDP length %d in IP length %d of %d bytes", ErrPacket, size, total, len(frame)-ip)
	case size-pathFixed+grow > MaxPathHops*labelLen:
		return 0, fmt.Errorf("%w: %d bytes of labels", ErrTooLong, size-pathFixed)
	}
	return udp, nil
}

// PopPort does the first half of what a switch does to an INT-path probe. It removes the next entry of the route and
// returns it as the egress port. The IPv4 header begins at frame[ip].
func PopPort(frame []byte, ip int) (port int, err error) {
	udp, err := path(frame, ip, 0)
	if err != nil {
		return 0, err
	}
	list := frame[udp+udpHeader : udp+udpHeader+srListLen]
	port = int(list[srListLen-1]&15) + 1
	for i := srListLen - 1; i > 0; i-- {
		list[i] = list[i]>>4 | list[i-1]<<4
	}
	list[0] >>= 4
	return port, nil
}

// PushLabel does the second half. It inserts h's label before the older ones and returns the longer frame, which uses
// frame's memory if there is room. UDP and IPv4 length grow, and the UDP checksum becomes 0. As in the P4 program, 22
// is subtracted from the IPv4 checksum without one's complement carry. If the checksum is below 22, the result is one
// too large and the receiving host drops the probe.
func PushLabel(frame []byte, ip int, h *decode.Hop) ([]byte, error) {
	udp, err := path(frame, ip, labelLen)
	if err != nil {
		return frame, err
	}
	var label [labelLen]byte
	AppendLabel(label[:0], h)
	frame = slices.Insert(frame, udp+udpHeader+srListLen, label[:]...)
	add := func(at int, n uint16) {
		binary.BigEndian.PutUint16(frame[at:], binary.BigEndian.Uint16(frame[at:])+n)
	}
	add(udp+4, labelLen)
	frame[udp+6], frame[udp+7] = 0, 0
	add(ip+2, labelLen)
	add(ip+10, ^uint16(labelLen-1)) // minus 22
	return frame, nil
}

// AppendProbe appends an INT-Probe frame from its EtherType on, as the sender writes it. The ports are the egress
// ports of the switches, first switch first, 0 to 255 each, at most 16. On error dst is returned as it was.
func AppendProbe(dst []byte, ports []int) ([]byte, error) {
	if err := checkRoute(ports, MaxProbeHops, 0, MaxProbePort); err != nil {
		return dst, err
	}
	dst = append(dst, TypeRoute>>8, TypeRoute&0xff, 0, byte(2+2*len(ports)))
	for _, p := range ports {
		dst = append(dst, 0, byte(p))
	}
	return append(dst, TypeINT>>8, TypeINT&0xff, 0, 0), nil
}

// AppendProbeLabel appends h as a label of INT-Probe. Values are cut to the width they have there, as a switch does:
// switch id and ports 8 bits, times 48, queue depths 24.
func AppendProbeLabel(dst []byte, h *decode.Hop) []byte {
	be := binary.BigEndian
	dst = append(dst, byte(h.NodeID), byte(h.IngressIf), byte(h.EgressIf), 0)
	for _, t := range [...]uint64{h.IngressTime, h.EgressTime} {
		dst = be.AppendUint32(be.AppendUint16(dst, uint16(t>>32)), uint32(t))
	}
	dst = be.AppendUint32(dst, h.EnqTime)
	dst = be.AppendUint32(dst, h.QueueOccupancy&0xffffff)
	dst = be.AppendUint32(dst, h.QueueDelay)
	return be.AppendUint32(dst, h.DeqOccupancy&0xffffff)
}

// PopProbePort does the first half of what a switch does to an INT-Probe frame, whose EtherType is at frame[at]. It
// removes the first entry of the route, and the route with its last entry. It returns the shorter frame and the
// egress port.
func PopProbePort(frame []byte, at int) ([]byte, int, error) {
	if at < 0 || len(frame) < at+6 || binary.BigEndian.Uint16(frame[at:]) != TypeRoute {
		return frame, 0, fmt.Errorf("%w: no route at byte %d", ErrPacket, at)
	}
	n := int(frame[at+3])
	if n < 4 || n%2 != 0 || n > 2+2*MaxProbeHops || len(frame) < at+2+n+2 {
		return frame, 0, fmt.Errorf("%w: route of %d bytes", ErrPacket, n)
	}
	port := int(frame[at+5])
	if n == 4 {
		return slices.Delete(frame, at, at+6), port, nil
	}
	frame[at+3] -= 2
	return slices.Delete(frame, at+4, at+6), port, nil
}

// PushProbeLabel does the second half. It inserts h's label before the older ones, counts it, and returns the longer
// frame, which uses frame's memory if there is room.
func PushProbeLabel(frame []byte, at int, h *decode.Hop) ([]byte, error) {
	if at < 0 || len(frame) < at+4 {
		return frame, fmt.Errorf("%w: %d bytes", ErrPacket, len(frame))
	}
	if binary.BigEndian.Uint16(frame[at:]) == TypeRoute {
		at += 2 + int(frame[at+3])
	}
	if len(frame) < at+4 || binary.BigEndian.Uint16(frame[at:]) != TypeINT {
		return frame, fmt.Errorf("%w: no INT header at byte %d", ErrPacket, at)
	}
	if frame[at+3] == 255 {
		return frame, fmt.Errorf("%w: 255 labels", ErrTooLong)
	}
	frame[at+3]++
	var label [probeLabelLen]byte
	AppendProbeLabel(label[:0], h)
	return slices.Insert(frame, at+4, label[:]...), nil
}
