package plain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sFlow reads an sFlow datagram value by value, in the order of the format's page. It returns a line for the datagram
// and one for each sample. A sample whose lengths lie ends it with an error.
func sFlow(b []byte) (lines []string, err error) {
	x := &xdr{b: b}
	defer func() {
		if r := recover(); r != nil {
			if r != errXDR {
				panic(r)
			}
			err = errXDR
		}
	}()
	if x.u32() != 5 {
		return nil, errXDR
	}
	agent := ""
	switch x.u32() {
	case 0:
	case 1:
		agent = fmt.Sprintf("%x", x.bytes(4))
	case 2:
		agent = fmt.Sprintf("%x", x.bytes(16))
	default:
		return nil, errXDR
	}
	sub, seq, up, n := x.u32(), x.u32(), x.u32(), x.u32()
	lines = append(lines, fmt.Sprintf("agent %s sub %d seq %d up %d samples %d", agent, sub, seq, up, n))
	for range n {
		tag, body := x.opaque()
		line, ok := sflowSample(tag, body)
		if !ok {
			return lines, errXDR
		}
		lines = append(lines, line)
	}
	return lines, nil
}

var errXDR = errors.New("the lengths lie")

type xdr struct{ b []byte }

func (x *xdr) bytes(n int) []byte {
	if n < 0 || n > len(x.b) {
		panic(errXDR)
	}
	v := x.b[:n]
	x.b = x.b[n:]
	return v
}

func (x *xdr) u32() uint32 { return binary.BigEndian.Uint32(x.bytes(4)) }
func (x *xdr) u64() uint64 { return binary.BigEndian.Uint64(x.bytes(8)) }

func (x *xdr) opaque() (tag uint32, body []byte) {
	tag = x.u32()
	n := int(x.u32())
	if n%4 != 0 {
		panic(errXDR)
	}
	return tag, x.bytes(n)
}

func (x *xdr) text(most int) string {
	n := int(x.u32())
	if most > 0 && n > most {
		panic(errXDR)
	}
	s := string(x.bytes(n))
	x.bytes((4 - n%4) % 4)
	return s
}

func sflowSample(tag uint32, b []byte) (line string, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errXDR {
				panic(r)
			}
			ok = false
		}
	}()
	x, counters := &xdr{b: b}, false
	var out strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	source := func(expanded bool) {
		if p("seq %d", x.u32()); expanded {
			p(" source %d/%d", x.u32(), x.u32())
		} else {
			v := x.u32()
			p(" source %d/%d", v/(1<<24), v%(1<<24))
		}
	}
	short := func() { v := x.u32(); p(" %d/%d", v>>30, v<<2>>2) }
	switch tag {
	case 1:
		p("flow ")
		source(false)
		p(" rate %d pool %d drops %d", x.u32(), x.u32(), x.u32())
		short()
		short()
	case 3:
		p("flow ")
		source(true)
		p(" rate %d pool %d drops %d", x.u32(), x.u32(), x.u32())
		p(" %d/%d %d/%d", x.u32(), x.u32(), x.u32(), x.u32())
	case 2, 4:
		counters = true
		p("counters ")
		source(tag == 4)
	case 5:
		p("discard ")
		source(true)
		p(" drops %d in %d out %d reason %d", x.u32(), x.u32(), x.u32(), x.u32())
	default:
		return fmt.Sprintf("tag %d", tag), true
	}
	skipped, records := 0, map[uint32]string{}
	for range x.u32() {
		t, body := x.opaque()
		if s, ok := sflowRecord(t, counters, &xdr{b: body}); ok {
			if t == 4 { // of two that say the same, the last one counts, too
				t = 3
			}
			records[t] = s // the last one of a kind counts
		} else {
			skipped++
		}
	}
	for _, t := range slices.Sorted(maps.Keys(records)) {
		p("%s", records[t])
	}
	p(" skipped %d", skipped)
	return out.String(), true
}

func sflowRecord(tag uint32, counters bool, x *xdr) (s string, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errXDR {
				panic(r)
			}
			ok = false
		}
	}()
	switch {
	case counters && tag == 1:
		s = fmt.Sprint(" if ", x.u32(), x.u32(), x.u64(), x.u32(), x.u32(), x.u64(), x.u32(), x.u32(), x.u32(), x.u32(), x.u32(), x.u32(),
			x.u64(), x.u32(), x.u32(), x.u32(), x.u32(), x.u32(), x.u32())
	case counters && tag == 1005:
		s = fmt.Sprintf(" name %q", x.text(64))
	case counters:
		return "", false
	case tag == 1:
		s = fmt.Sprint(" header ", x.u32(), x.u32(), x.u32())
		s += fmt.Sprintf(" %x", x.bytes(int(x.u32())))
	case tag == 3 || tag == 4:
		n := int(4 + 12*(tag-3))
		length, proto, src, dst, from, to := x.u32(), x.u32(), x.bytes(n), x.bytes(n), x.u32(), x.u32()
		s = fmt.Sprintf(" ip %d %d %d %x %x %d %d %d %d", n, length, proto, src, dst, from, to, x.u32(), x.u32())
		if proto > 255 || from > 65535 || to > 65535 {
			return "", false
		}
	case tag == 1001:
		s = fmt.Sprint(" switch ", x.u32(), x.u32(), x.u32(), x.u32())
	case tag == 1036:
		s = fmt.Sprint(" queue ", x.u32())
	case tag == 1037:
		n := x.u32()
		s = fmt.Sprintf(" acl %d %q %d", n, x.text(64), x.u32())
	case tag == 1038:
		s = fmt.Sprintf(" function %q", x.text(64))
	case tag == 1039:
		s = fmt.Sprint(" delay ", x.u32())
	case tag == 1040:
		s = fmt.Sprint(" depth ", x.u32())
	case tag == 1041:
		s = fmt.Sprintf(" trap %q %q", x.text(64), x.text(64))
	case tag == 1042:
		s = fmt.Sprintf(" linux %q", x.text(64))
	case tag == 1043:
		s = fmt.Sprint(" time ", x.u64())
	default:
		return "", false
	}
	return s, true
}
