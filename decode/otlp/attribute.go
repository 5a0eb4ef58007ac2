package otlp

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/hopscope/hopscope/decode"
)

// mostAttributes bounds those of a resource or a point.
const mostAttributes = 64

// attribute is one attribute of a resource or a point. Values that are neither a text nor a whole number are empty texts.
type attribute struct {
	key, text []byte
	number    int64
	numeric   bool
}

// add reads an attribute, and reports whether there was room.
func add(list *[]attribute, m message) bool {
	if len(*list) == mostAttributes {
		return false
	}
	var a attribute
	for f := (field{}); m.next(&f); {
		switch {
		case f.is(1, bytes):
			a.key = m.data[f.from:f.to]
		case f.is(2, bytes):
			v := m.in(&f)
			for f := (field{}); v.next(&f); {
				switch {
				case f.is(1, bytes):
					a.text, a.numeric = v.data[f.from:f.to], false
				case f.is(3, varint):
					a.number, a.numeric = int64(f.v), true
				}
			}
		}
	}
	*list = append(*list, a)
	return true
}

// find returns the attribute with a key, the last of several, or nil.
func find(list []attribute, key string) *attribute {
	for i := len(list) - 1; i >= 0; i-- {
		if string(list[i].key) == key {
			return &list[i]
		}
	}
	return nil
}

func (a *attribute) equals(text string) bool {
	if a.numeric {
		return strconv.FormatInt(a.number, 10) == text
	}
	return string(a.text) == text
}

// value is the text of the value.
func (a *attribute) value() string {
	if a.numeric {
		return strconv.FormatInt(a.number, 10)
	}
	return string(a.text)
}

// hash mixes bytes into h.
func (d *Decoder) hash(h uint64, b []byte) uint64 {
	h = d.key.Words(h, uint64(len(b)), 1, 0)
	for len(b) >= 8 {
		h = d.key.Words(h, binary.LittleEndian.Uint64(b), 2, 0)
		b = b[8:]
	}
	for _, c := range b {
		h = d.key.Words(h, uint64(c), 3, 0)
	}
	return h
}

// hashOf is the hash of a set of attributes, independent of their order.
func (d *Decoder) hashOf(list []attribute) (sum uint64) {
	for i := range list {
		a := &list[i]
		h := d.hash(d.hash(0, a.key), a.text)
		if a.numeric {
			h = d.key.Words(h, uint64(a.number), 4, 0)
		}
		sum += h
	}
	return sum
}

// nodeOf returns the node id for a name or an address, never 0. A number stands for itself, and an address has the
// same id as for sFlow agents. Other names have a 32-bit hash, which is the same in every run.
func nodeOf(name string) uint32 {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return decode.AddrFrom(a).Node()
	}
	return max(numberOf(name), 1)
}

// named is the least number of an interface that is made of its name: those that devices count from 1 on are below it.
const named = 1 << 16

// portOf is the number of an interface: a number itself, and otherwise bits of its name, above those that devices use.
func portOf(name string) uint32 {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	return numberOf(name)&(1<<31-1) | named
}

// numberOf is 32 bits of FNV-1a.
func numberOf(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}
