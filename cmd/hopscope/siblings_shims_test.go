package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

// A remark names what cannot stand under a shim: a type that is not defined, and a stack under a type that has none. Under a type that has one it is read.
func TestSiblingsShims(t *testing.T) {
	type sibling struct {
		name string
		kind byte
		v    version
		make func(i int) []byte
	}
	var list []sibling
	for _, v := range []version{{decode.V05, 0xe000}, {decode.V10, 0xfc00}, {decode.V21, 0xf000}} {
		for _, w := range ways() {
			if w.gre || w.only21 && v.v != decode.V21 || strings.Contains(w.name, "Geneve") { // where the shim is the option, the carrier finds it by its class
				continue
			}
			for kind := range byte(16) {
				packet := func(i int) []byte {
					return w.tail(func(h intmd.Header) []byte {
						b := v.stackOf(h, hopsOf(i, 1001, 1002, 1003))
						if v.v == decode.V21 {
							b[0] = kind<<4 | b[0]&0x0f
						} else {
							b[0] = kind
						}
						return b
					})
				}
				for _, rv := range []decode.Version{decode.V10, decode.V20} {
					list = append(list, sibling{fmt.Sprintf("type %d, report %v, %v, %s", kind, rv, v, w.name), kind, v, func(i int) []byte {
						return reportOf(rv, i, decode.Tracked, packet(i))
					}})
				}
			}
		}
	}
	const n = 2
	var f frames
	for i := range n {
		for k, x := range list {
			f = append(f, reportFrame(source(k), 32766, x.make(i)))
		}
	}
	s := f.summary(t)
	_, said := counts(&s)
	out, _, _ := run(t, t.TempDir(), "decode", f.file(t))
	lines := strings.Split(out, "\n")
	for k, x := range list {
		src := source(k)
		address := fmt.Sprintf("%d.%d.%d.%d", src[0], src[1], src[2], src[3])
		read := strings.Contains(lines[k], `"node_id":1001,`) && strings.Contains(lines[k], `"node_id":1003,`)
		reported := strings.Contains(lines[k], `"error"`) || said[address+" stack-in-mx"] == n || said[address+" more-data"] == n && strings.Contains(lines[k], `"unknown":"0x`)
		if read != (x.kind == 1) || reported == read {
			t.Errorf("%s: read %v, reported %v: %s", x.name, read, reported, lines[k])
		}
	}
}
