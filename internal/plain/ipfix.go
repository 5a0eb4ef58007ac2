package plain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// IPFIX is a second reader of IPFIX and NetFlow 9, for one exporter. It is written from the page of the format, element
// by element, and returns lines.
type IPFIX struct {
	templates map[string][]element
}

type element struct {
	pen, id, length int
	options         bool
}

var errIPFIX = errors.New("it is malformed")

// octets takes bytes from the front, and panics with errIPFIX where there are too few.
type octets []byte

func (o *octets) next(n int) []byte {
	if n < 0 || n > len(*o) {
		panic(errIPFIX)
	}
	v := (*o)[:n]
	*o = (*o)[n:]
	return v
}

func (o *octets) num(n int) (v int) {
	for _, c := range o.next(n) {
		v = v*256 + int(c)
	}
	return v
}

// try runs f, and reports whether it was malformed.
func try(f func()) (bad bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errIPFIX {
				panic(r)
			}
			bad = true
		}
	}()
	f()
	return false
}

// Read reads a message. An error within a set makes that set alone malformed; lengths that exceed the bytes around them
// end the message.
func (x *IPFIX) Read(b []byte) (lines []string, bad bool) {
	if x.templates == nil {
		x.templates = map[string][]element{}
	}
	in := octets(b)
	bad = try(func() {
		version, n := in.num(2), in.num(2)
		if version == 10 {
			if n < 16 || n > len(b) {
				panic(errIPFIX)
			}
			in = in[:n-4]
		} else if version == 9 {
			in.num(4)
		} else {
			panic(errIPFIX)
		}
		at, seq, domain := in.num(4), in.num(4), in.num(4)
		if version == 9 && n > 0 && len(in) == 0 { // it counts records that are not there
			panic(errIPFIX)
		}
		lines = append(lines, fmt.Sprintf("v%d time %d seq %d domain %d", version, at, seq, domain))
		for len(in) > 0 {
			id, size := in.num(2), in.num(2)
			kind := id
			if version == 9 {
				kind += 2
			}
			if size < 4 || id < 256 && kind != 2 && kind != 3 {
				panic(errIPFIX)
			}
			set := octets(in.next(size - 4))
			failed := try(func() {
				if id < 256 {
					x.define(version, domain, kind == 3, set, &lines)
				} else {
					x.records(version, domain, id, set, &lines)
				}
			})
			bad = bad || failed
		}
	}) || bad
	return lines, bad
}

func (x *IPFIX) key(version, domain, id int) string { return fmt.Sprint(version, domain, id) }

func (x *IPFIX) define(version, domain int, options bool, set octets, lines *[]string) {
	for len(set) >= 4 && strings.Trim(string(set), "\x00") != "" {
		id, count, scopes := set.num(2), set.num(2), 0
		all := version == 10 && count == 0 && (id == 2 && !options || id == 3 && options)
		if id < 256 && !all {
			panic(errIPFIX)
		}
		if options && (version == 9 || count > 0) {
			scopes = set.num(2)
			if version == 9 {
				if count%4 != 0 || scopes%4 != 0 {
					panic(errIPFIX)
				}
				scopes, count = count/4, count/4+scopes/4
			} else if scopes == 0 || scopes > count {
				panic(errIPFIX)
			}
		}
		var list []element
		least := 0
		for range count {
			e := element{id: set.num(2), length: set.num(2), options: options}
			if version == 10 && e.id >= 0x8000 {
				e.id, e.pen = e.id-0x8000, set.num(4)
			}
			if list = append(list, e); e.length == 65535 {
				least++
			} else {
				least += e.length
			}
		}
		*lines = append(*lines, fmt.Sprintf("template %d of %d scopes %d", id, count, scopes))
		switch {
		case version == 10 && count == 0:
			for k, t := range x.templates {
				if k == x.key(version, domain, id) || all && strings.HasPrefix(k, fmt.Sprint(version, domain)+" ") && t[0].options == options {
					delete(x.templates, k)
				}
			}
		case least == 0:
			*lines = append(*lines, "refused")
		default:
			x.templates[x.key(version, domain, id)] = list
		}
	}
}

func (x *IPFIX) records(version, domain, id int, set octets, lines *[]string) {
	list := x.templates[x.key(version, domain, id)]
	if list == nil {
		*lines = append(*lines, fmt.Sprintf("waiting for %d: %x", id, []byte(set)))
		return
	}
	least := 0
	for _, e := range list {
		if e.length == 65535 {
			least++
		} else {
			least += e.length
		}
	}
	for len(set) >= least {
		line := fmt.Sprintf("record %d", id)
		for _, e := range list {
			n := e.length
			if n == 65535 {
				if n = set.num(1); n == 255 {
					n = set.num(2)
				}
			}
			line += fmt.Sprintf(" %d.%d:%x", e.pen, e.id, set.next(n))
		}
		*lines = append(*lines, line)
	}
}

// exception reads the values of Juniper's element 137 of a record: what each is stands in its upper 6 bits.
func exception(values ...[]byte) (words []string) {
	names := []string{"", "class", "code", "next hop", "egress", "underlying", "ingress"}
	seen := false
	for _, v := range values {
		if len(v) == 0 || len(v) > 4 {
			continue
		}
		bits := ""
		for _, c := range v {
			bits += fmt.Sprintf("%08b", c)
		}
		what, rest := 0, 0
		fmt.Sscanf(bits[:6], "%b", &what)
		fmt.Sscanf(bits[6:], "%b", &rest)
		if what == 0 || what >= len(names) || what == 2 && seen {
			continue
		}
		seen = seen || what == 2
		words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, names[what]+" ") })
		words = append(words, fmt.Sprint(names[what], " ", rest))
	}
	slices.Sort(words)
	return words
}
