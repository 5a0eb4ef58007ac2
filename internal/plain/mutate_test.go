package plain_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/internal/plain"
)

// A mutator changes a frame. It parses layers only well enough to find the fields that are worth a lie. It leaves a
// frame alone that has no place for the change.
type mutator struct {
	name  string
	apply func(r *rand.Rand, f *plain.Frame)
}

var mutators = []mutator{
	{"flip", flip}, {"flip", flip},
	{"overwrite", overwrite}, {"overwrite", overwrite},
	{"nudge", nudge}, {"nudge", nudge},
	{"ones", ones},
	{"cut-capture", cutCapture}, {"cut-capture", cutCapture}, {"cut-capture", cutCapture},
	{"cut-wire", cutWire},
	{"cut-packet", cutPacket}, {"cut-packet", cutPacket},
	{"lengths", lengths}, {"lengths", lengths},
	{"trailer", trailer},
	{"vlan", vlan},
	{"mpls", mpls},
	{"options", options},
	{"fragment", fragment},
	{"ipv6", toIPv6}, {"ipv6", toIPv6},
	{"tunnel", tunnel},
	{"repeat", repeat}, {"repeat", repeat},
	{"mark", mark},
	{"link", relink},
	{"inner", insideVLAN},
}

// mutate returns a changed copy of a frame, with the names of the changes.
func mutate(r *rand.Rand, f plain.Frame) (plain.Frame, []string) {
	f.Data = slices.Clone(f.Data)
	n := 1
	for n < 4 && r.IntN(3) == 0 {
		n++
	}
	var names []string
	for range n {
		m := mutators[r.IntN(len(mutators))]
		m.apply(r, &f)
		names = append(names, m.name)
	}
	return f, names
}

// packets returns the places of the IP headers in a frame: its own, and that of a packet inside of a report.
func packets(f *plain.Frame) (places []int) {
	b := f.Data
	at := map[uint16]int{1: 14, 113: 16, 276: 20, 0: 4, 108: 4, 9: 2}[f.Link]
	if f.Link == 9 && len(b) > 0 && b[0] == 0xff {
		at = 4
	}
	if f.Link == 1 {
		for at+4 < len(b) && (u16(b, at-2) == 0x8100 || u16(b, at-2) == 0x88a8) {
			at += 4
		}
	}
	if at+20 > len(b) || b[at]>>4 != 4 && b[at]>>4 != 6 {
		return nil
	}
	places = append(places, at)
	for i := at + 28; i+20 <= len(b) && i < at+140; i++ {
		// behind an EtherType, or directly behind the header of a report
		if b[i] == 0x45 && (u16(b, i-2) == 0x0800 || i > at+28 && i%2 == 0 && b[i+8] > 50 && (b[i+9] == 6 || b[i+9] == 17)) {
			return append(places, i)
		}
	}
	return places
}

// packet picks one of the packets of a frame.
func packet(r *rand.Rand, f *plain.Frame) (at int, ok bool) {
	places := packets(f)
	if len(places) == 0 {
		return 0, false
	}
	return places[r.IntN(len(places))], true
}

func u16(b []byte, at int) int       { return int(binary.BigEndian.Uint16(b[at:])) }
func setU16(b []byte, at int, v int) { binary.BigEndian.PutUint16(b[at:], uint16(v)) }

// transport returns the place of the transport header of the packet at a place, and its protocol; 0 if it is not there.
func transport(f *plain.Frame, at int) (l4 int, proto byte) {
	b := f.Data
	if at+20 > len(b) {
		return 0, 0
	}
	l4, proto = at+4*int(b[at]&15), b[at+9]
	if b[at]>>4 == 6 {
		if at+40 > len(b) {
			return 0, 0
		}
		l4, proto = at+40, b[at+6]
	}
	if l4+8 > len(b) {
		return 0, 0
	}
	return l4, proto
}

// grow adds n to the lengths of the frame's own packet and of its datagram.
func grow(f *plain.Frame, n int) {
	places := packets(f)
	if len(places) == 0 {
		return
	}
	at := places[0]
	lengthAt := at + 2
	if f.Data[at]>>4 == 6 {
		lengthAt = at + 4
	}
	setU16(f.Data, lengthAt, u16(f.Data, lengthAt)+n)
	if l4, proto := transport(f, at); l4 != 0 && proto == 17 {
		setU16(f.Data, l4+4, u16(f.Data, l4+4)+n)
	}
}

// insert puts bytes into a frame.
func insert(f *plain.Frame, at int, b []byte) {
	f.Data = slices.Insert(f.Data, at, b...)
	f.Length += len(b)
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// spot picks a byte; the first ones, where headers are, more often.
func spot(r *rand.Rand, f *plain.Frame) int {
	n := len(f.Data)
	if places := packets(f); len(places) > 0 && r.IntN(2) == 0 {
		at := places[r.IntN(len(places))]
		return min(at+r.IntN(min(n-at, 64)), n-1)
	}
	if r.IntN(2) == 0 {
		n = min(n, 128)
	}
	return r.IntN(n)
}

func flip(r *rand.Rand, f *plain.Frame) {
	for range 1 + r.IntN(3) {
		if len(f.Data) > 0 {
			f.Data[spot(r, f)] ^= 1 << r.IntN(8)
		}
	}
}

func overwrite(r *rand.Rand, f *plain.Frame) {
	if len(f.Data) == 0 {
		return
	}
	at := spot(r, f)
	for range 1 + r.IntN(4) {
		if at < len(f.Data) {
			f.Data[at] = [...]byte{0, 1, 0xff, 0x10, 0x20, byte(r.Uint32()), byte(r.IntN(16)), byte(r.IntN(64))}[r.IntN(8)]
		}
		at++
	}
}

// nudge adds a little to a byte, which may be a length or a count.
func nudge(r *rand.Rand, f *plain.Frame) {
	if len(f.Data) > 0 {
		f.Data[spot(r, f)] += byte(r.IntN(9) - 4)
	}
}

// ones makes values invalid.
func ones(r *rand.Rand, f *plain.Frame) {
	if len(f.Data) == 0 {
		return
	}
	at, n := spot(r, f)&^1, 2<<r.IntN(4)
	for i := at; i < min(at+n, len(f.Data)); i++ {
		f.Data[i] = 0xff
	}
}

func cutCapture(r *rand.Rand, f *plain.Frame) {
	f.Data = f.Data[:r.IntN(len(f.Data)+1)]
}

func cutWire(r *rand.Rand, f *plain.Frame) {
	cutCapture(r, f)
	f.Length = len(f.Data)
	if r.IntN(4) == 0 {
		f.Length += r.IntN(40)
	}
}

// cutPacket shortens the packet with all lengths around it.
func cutPacket(r *rand.Rand, f *plain.Frame) {
	places := packets(f)
	if len(places) == 0 || len(f.Data) < places[0]+28 {
		return
	}
	n := r.IntN(len(f.Data) - places[0] - 27)
	if r.IntN(2) == 0 {
		n = r.IntN(min(n, 32) + 1)
	}
	grow(f, -n)
	f.Data = f.Data[:len(f.Data)-n]
	f.Length -= n
}

// lengths lies about the length of a packet or a datagram.
func lengths(r *rand.Rand, f *plain.Frame) {
	at, ok := packet(r, f)
	if !ok {
		return
	}
	place := at + 2
	if f.Data[at]>>4 == 6 {
		place = at + 4
	}
	if l4, proto := transport(f, at); l4 != 0 && proto == 17 && r.IntN(2) == 0 {
		place = l4 + 4
	}
	switch old := u16(f.Data, place); r.IntN(5) {
	case 0:
		setU16(f.Data, place, 0)
	case 1:
		setU16(f.Data, place, r.IntN(65536))
	case 2:
		setU16(f.Data, place, r.IntN(old+1))
	default:
		setU16(f.Data, place, old+r.IntN(65)-32)
	}
}

func trailer(r *rand.Rand, f *plain.Frame) {
	if len(f.Data) == f.Length {
		insert(f, len(f.Data), random(r, 1+r.IntN(64)))
	}
}

func vlan(r *rand.Rand, f *plain.Frame) {
	n := 1 + r.IntN(3)
	if r.IntN(4) == 0 {
		n = 7 + r.IntN(3)
	}
	for range n {
		if f.Link == 1 && len(f.Data) >= 14 {
			insert(f, 12, tagOf(r))
		}
	}
}

// tagOf is a tag of any kind, or now and then a length with LLC and SNAP.
func tagOf(r *rand.Rand) []byte {
	k := r.IntN(7)
	if k == 6 {
		return []byte{byte(r.IntN(7)), byte(r.IntN(256)), 0xaa, 0xaa, 3, 0, 0, byte(r.IntN(9) / 8)}
	}
	tag := random(r, [...]int{4, 4, 4, 6, 8, 18}[k])
	setU16(tag, 0, [...]int{0x8100, 0x88a8, 0x9100, 0x8926, 0x893f, 0x88e7}[k])
	return tag
}

func mpls(r *rand.Rand, f *plain.Frame) {
	if f.Link == 1 && len(f.Data) >= 14 {
		insert(f, 14, []byte{0, 1, 1, 64})
		setU16(f.Data, 12, 0x8847+r.IntN(2))
	}
}

// options inserts IPv4 options, or TCP options behind a data offset.
func options(r *rand.Rand, f *plain.Frame) {
	at, ok := packet(r, f)
	if !ok || f.Data[at]>>4 != 4 {
		return
	}
	words := 1 + r.IntN(10)
	if l4, proto := transport(f, at); l4 != 0 && proto == 6 && l4+20 <= len(f.Data) && r.IntN(2) == 0 {
		f.Data[l4+12] = byte(5+words)<<4 | f.Data[l4+12]&15
		insert(f, l4+20, make([]byte, 4*words))
		grow(f, 4*words)
		return
	}
	f.Data[at] = 0x45 + byte(words)
	insert(f, at+20, make([]byte, 4*words))
	setU16(f.Data, at+2, u16(f.Data, at+2)+4*words)
	if places := packets(f); len(places) > 0 && places[0] != at {
		grow(f, 4*words)
	}
}

func fragment(r *rand.Rand, f *plain.Frame) {
	at, ok := packet(r, f)
	if !ok || f.Data[at]>>4 != 4 {
		return
	}
	setU16(f.Data, at+6, [...]int{0x2000, 1, 0x2001, 0x4000, 0x8000, r.IntN(65536)}[r.IntN(6)])
}

// toIPv6 makes an IPv6 packet of an IPv4 one, or adds to the extension headers of an IPv6 one.
func toIPv6(r *rand.Rand, f *plain.Frame) {
	places := packets(f)
	at, ok := packet(r, f)
	if !ok {
		return
	}
	var chain []byte
	first := -1
	last := -1
	n := r.IntN(4)
	if r.IntN(8) == 0 {
		n = 14 + r.IntN(5)
	}
	for range n {
		kind := [...]int{0, 43, 44, 51, 60}[r.IntN(5)]
		header := make([]byte, 8)
		switch kind {
		case 44:
			if r.IntN(2) == 0 {
				setU16(header, 2, [...]int{0, 1, 8, 6, 9}[r.IntN(5)])
			}
		case 51:
			header = make([]byte, 8+4*r.IntN(3))
			header[1] = byte(len(header)/4 - 2)
		default:
			header = make([]byte, 8*(1+r.IntN(2)))
			header[1] = byte(len(header)/8 - 1)
		}
		if first < 0 {
			first = kind
		} else {
			chain[last] = byte(kind)
		}
		last = len(chain)
		chain = append(chain, header...)
	}
	if f.Data[at]>>4 == 6 {
		if at+40 > len(f.Data) || first < 0 {
			return
		}
		chain[last] = f.Data[at+6]
		f.Data[at+6] = byte(first)
		setU16(f.Data, at+4, u16(f.Data, at+4)+len(chain))
		insert(f, at+40, chain)
		if at != places[0] {
			grow(f, len(chain))
		}
		return
	}
	size := 4 * int(f.Data[at]&15)
	if at+size > len(f.Data) || size < 20 {
		return
	}
	proto := f.Data[at+9]
	if first >= 0 {
		chain[last] = proto
		proto = byte(first)
	}
	header := make([]byte, 40, 40+len(chain))
	binary.BigEndian.PutUint32(header, 6<<28|uint32(f.Data[at+1])<<20|r.Uint32()&0xfffff)
	setU16(header, 4, u16(f.Data, at+2)-size+len(chain))
	header[6], header[7] = proto, f.Data[at+8]
	copy(header[8:], []byte{0x20, 1, 0xd, 0xb8})
	copy(header[20:24], f.Data[at+12:])
	copy(header[24:], []byte{0xfd})
	copy(header[36:40], f.Data[at+16:])
	header = append(header, chain...)
	f.Data = slices.Replace(f.Data, at, at+size, header...)
	f.Length += len(header) - size
	if at >= 2 && u16(f.Data, at-2) == 0x0800 {
		setU16(f.Data, at-2, 0x86dd)
	}
	if at != places[0] {
		grow(f, len(header)-size)
		// A report 1.0 or 2.0 marked as IPv4 is marked as IPv6 now, as often as not.
		if i := at - 4; i > 0 && r.IntN(2) == 0 && f.Data[i]&15 == 4 {
			f.Data[i]++
		}
	}
}

// tunnel puts the packet into another one.
func tunnel(r *rand.Rand, f *plain.Frame) {
	places := packets(f)
	if len(places) == 0 {
		return
	}
	at := places[0]
	kind := u16(f.Data, max(at-2, 0))
	var head []byte
	proto := byte(47)
	frame := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, byte(kind >> 8), byte(kind)}
	switch r.IntN(6) {
	case 0:
		proto = 4
		if f.Data[at]>>4 == 6 {
			proto = 41
		}
	case 1:
		head = []byte{0, 0, byte(kind >> 8), byte(kind)}
	case 2:
		head = append([]byte{0, 0, 0x65, 0x58}, frame...)
	case 3, 4:
		port := [...]int{4789, 8472, 2152}[r.IntN(3)]
		proto = 17
		head = append([]byte{0x80, 0, byte(port >> 8), byte(port), 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 2, 0}, frame...)
		setU16(head, 4, len(f.Data)-at+len(head))
	default:
		proto = 50
		head = random(r, 8)
	}
	outer := make([]byte, 20, 20+len(head))
	outer[0], outer[1], outer[8], outer[9] = 0x45, f.Data[at+1], 64, proto
	setU16(outer, 2, f.Length-at+20+len(head))
	copy(outer[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	insert(f, at, append(outer, head...))
	if f.Link == 1 && at >= 14 {
		setU16(f.Data, at-2, 0x0800)
	}
}

// repeat has something twice in a datagram: all of its payload, or a report of a group.
func repeat(r *rand.Rand, f *plain.Frame) {
	places := packets(f)
	if len(places) == 0 {
		return
	}
	l4, proto := transport(f, places[0])
	if l4 == 0 || proto != 17 || len(f.Data) != f.Length {
		return
	}
	from := l4 + 8
	if from < len(f.Data) && f.Data[from]>>4 == 2 {
		from = min(from+8, len(f.Data))
		if f.Data[from-7+0]>>6 == 0 && from+2 < len(f.Data) && f.Data[from+1] == 0 && r.IntN(2) == 0 {
			f.Data[from+1] = byte((len(f.Data) - from - 4) / 4)
		}
	}
	for range 1 + r.IntN(2) {
		more := slices.Clone(f.Data[from:])
		if len(more) > 1500 {
			return
		}
		insert(f, len(f.Data), more)
		grow(f, len(more))
	}
}

// mark gives a packet a mark of another dialect.
func mark(r *rand.Rand, f *plain.Frame) {
	at, ok := packet(r, f)
	if !ok {
		return
	}
	if l4, proto := transport(f, at); l4 != 0 && proto == 17 && r.IntN(2) == 0 {
		setU16(f.Data, l4+2, [...]int{32766, 1234, 8090, 17768, 33122, 2222, 4790, 6081}[r.IntN(8)])
		return
	}
	dscp := [...]int{0x17, 0x01, 0x20, 0, 0x3f}[r.IntN(5)]
	if f.Data[at]>>4 == 4 {
		f.Data[at+1] = byte(dscp << 2)
		if r.IntN(8) == 0 {
			f.Data[at+1] = 1
		}
	} else {
		setU16(f.Data, at, 6<<12|dscp<<6|r.IntN(64))
	}
}

// relink has the frame captured somewhere else: without Ethernet, on Linux's any, a loopback or a serial line.
func relink(r *rand.Rand, f *plain.Frame) {
	if f.Link != 1 || len(f.Data) < 14 || r.IntN(2) == 0 {
		return
	}
	kind := f.Data[12:14]
	head := []byte{}
	family, protocol := byte(2), byte(0x21)
	if kind[0] == 0x86 {
		family, protocol = [...]byte{10, 24, 28, 30}[r.IntN(4)], 0x57
	}
	switch f.Link = [...]uint16{101, 228, 229, 113, 276, 0, 108, 9}[r.IntN(8)]; f.Link {
	case 0:
		head = []byte{family, 0, 0, 0}
		if r.IntN(2) == 0 {
			head = []byte{0, 0, 0, family}
		}
	case 108:
		head = []byte{0, 0, 0, family}
	case 9:
		head = []byte{0, protocol}
		if r.IntN(2) == 0 {
			head = []byte{0xff, 3, 0, protocol}
		}
	case 113:
		head = append([]byte{0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0}, kind...)
	case 276:
		head = append(append(head, kind...), make([]byte, 18)...)
	}
	f.Data = append(head, f.Data[14:]...)
	f.Length += len(head) - 14
}

// insideVLAN tags the frame inside of a report.
func insideVLAN(r *rand.Rand, f *plain.Frame) {
	places := packets(f)
	if len(places) < 2 || u16(f.Data, places[1]-2) != 0x0800 {
		return
	}
	tag := tagOf(r)
	insert(f, places[1]-2, tag)
	grow(f, len(tag))
}
