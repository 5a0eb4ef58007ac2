package testkit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/hopscope/hopscope/ingest"
)

// FrameLog keeps what a source hands over.
type FrameLog struct {
	Hold sync.Mutex // locked while batches are to wait

	mu      sync.Mutex
	frames  []ingest.Frame // with bytes of their own
	workers []int          // of frames
	until   []int64        // of batches
}

// Handle is the handler of a source.
func (l *FrameLog) Handle(worker int, b *ingest.Batch) {
	l.Hold.Lock()
	defer l.Hold.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range b.Frames {
		f.Data = bytes.Clone(f.Data)
		l.frames, l.workers = append(l.frames, f), append(l.workers, worker)
	}
	if b.Until != 0 {
		l.until = append(l.until, b.Until)
	}
}

// All returns the frames, and the worker of each.
func (l *FrameLog) All() ([]ingest.Frame, []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.frames), slices.Clone(l.workers)
}

// Await waits for n frames.
func (l *FrameLog) Await(t testing.TB, n int) []ingest.Frame {
	t.Helper()
	Until(t, fmt.Sprintf("%d frames came", n), func() bool { return l.Len() >= n })
	frames, _ := l.All()
	return frames
}

// Len is the number of frames.
func (l *FrameLog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.frames)
}

// Answers returns the times of the answers to prompts.
func (l *FrameLog) Answers() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.until)
}

// Forget drops the frames.
func (l *FrameLog) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames, l.workers = nil, nil
}

// UDPFrame is a frame of Ethernet with tags and a datagram of UDP in IPv4, whose payload begins with a number.
func UDPFrame(srcPort, dstPort uint16, number uint32, payload int, tags ...uint16) []byte {
	b := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1}
	for _, tag := range tags {
		b = binary.BigEndian.AppendUint16(b, 0x8100)
		b = binary.BigEndian.AppendUint16(b, tag)
	}
	return append(append(b, 8, 0), UDPPacket(srcPort, dstPort, number, payload)...)
}

// UDPPacket is a datagram of UDP in IPv4, whose payload begins with a number.
func UDPPacket(srcPort, dstPort uint16, number uint32, payload int) []byte {
	b := make([]byte, 28+payload)
	b[0], b[8], b[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[4:], uint16(number))
	copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	ChecksumIPv4(b)
	binary.BigEndian.PutUint16(b[20:], srcPort)
	binary.BigEndian.PutUint16(b[22:], dstPort)
	binary.BigEndian.PutUint16(b[24:], uint16(8+payload))
	binary.BigEndian.PutUint32(b[28:], number)
	for i := 32; i < len(b); i++ {
		b[i] = byte(i) ^ byte(number)
	}
	return b
}

// UDPFragments are the frames of a datagram that is cut behind so many bytes of its payload of IP, the last one first.
func UDPFragments(packet []byte, cut int) (frames [][]byte) {
	for _, part := range [][2]int{{cut, len(packet) - 20}, {0, cut}} {
		ip := slices.Concat(packet[:20], packet[20+part[0]:20+part[1]])
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		flags := part[0] / 8
		if part[1] < len(packet)-20 {
			flags |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[6:], uint16(flags))
		ChecksumIPv4(ip)
		frames = append(frames, append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0}, ip...))
	}
	return frames
}

// ChecksumIPv4 sets that of a header of IPv4 without options.
func ChecksumIPv4(b []byte) {
	b[10], b[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
}

// FrameHead is the headers of a generated frame: the oracle of filters, which reads no bytes.
type FrameHead struct {
	Tags     []uint16
	Ether    uint16
	V6       bool
	Src, Dst netip.Addr
	Proto    uint8
	Options  int    // bytes of options of IPv4
	Offset   uint16 // of the fragment
	More     bool   // fragments follow
	Port     uint16
}

// MakeFrameHead returns a random head, with up to most tags.
func MakeFrameHead(rng *rand.Rand, most int) (h FrameHead) {
	pick := func(n ...uint16) uint16 { return n[rng.IntN(len(n))] }
	for range rng.IntN(most + 1) {
		h.Tags = append(h.Tags, pick(0x8100, 0x88a8, 0x9100))
	}
	h.Ether = pick(0x0800, 0x0800, 0x86dd, 0x86dd, 0x0700, 0x0701, 0x0806, 0x88cc)
	h.V6 = h.Ether == 0x86dd
	address := func() netip.Addr {
		if h.V6 {
			a := netip.MustParseAddr("2001:db8::1").As16()
			a[rng.IntN(16)] ^= byte(pick(0, 1, 128))
			return netip.AddrFrom16(a)
		}
		return netip.AddrFrom4([4]byte{byte(pick(10, 192)), byte(rng.IntN(3)), byte(pick(0, 127, 128)), 1})
	}
	h.Src, h.Dst = address(), address()
	h.Proto = uint8(pick(17, 17, 17, 6, 0, 253))
	h.Options = 4 * rng.IntN(11)
	h.Offset = pick(0, 0, 0, 185)
	h.More = true
	h.Port = pick(6343, 32766, 53, 4739)
	return h
}

// Frame is the head in bytes.
func (h *FrameHead) Frame(ethernet bool) (b []byte) {
	if ethernet {
		b = make([]byte, 12)
		for _, t := range h.Tags {
			b = binary.BigEndian.AppendUint16(b, t)
			b = append(b, 0, 7)
		}
		b = binary.BigEndian.AppendUint16(b, h.Ether)
	}
	switch h.Ether {
	case 0x0800:
		ip := make([]byte, 20+h.Options)
		ip[0] = 4<<4 | byte(len(ip)/4)
		flags := h.Offset
		if h.More {
			flags |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[6:], flags)
		ip[9] = h.Proto
		copy(ip[12:], h.Src.AsSlice())
		copy(ip[16:], h.Dst.AsSlice())
		b = append(b, ip...)
	case 0x86dd:
		ip := make([]byte, 40)
		ip[0], ip[6] = 6<<4, h.Proto
		copy(ip[8:], h.Src.AsSlice())
		copy(ip[24:], h.Dst.AsSlice())
		b = append(b, ip...)
	}
	b = append(b, 9, 9)
	b = binary.BigEndian.AppendUint16(b, h.Port)
	return append(b, 0, 8, 0, 0)
}
