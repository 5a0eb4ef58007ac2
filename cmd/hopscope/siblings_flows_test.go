package main_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
)

// The flow is that of the packet that is measured, whatever carries it and the trace.
func TestSiblingsInnerFlow(t *testing.T) {
	type sibling struct {
		name string
		make func(k, i int) []byte
	}
	var list []sibling
	inners := []struct {
		name  string
		ether uint16
		proto uint8
		make  func(k int) []byte
	}{
		{"IPv4", 0x0800, 4, func(k int) []byte { return ip4(17, 0, 9, 8, udp(uint16(20000+k), 6000, []byte("data"))) }},
		{"IPv6", 0x86dd, 41, func(k int) []byte { return ip6(17, 0, 9, 8, udp(uint16(20000+k), 6000, []byte("data"))) }},
		{"IPv6 with a fragment's header behind a destination option", 0x86dd, 41, func(k int) []byte {
			return ip6(60, 0, 9, 8, slices.Concat([]byte{17, 0, 1, 4, 0, 0, 0, 0}, udp(uint16(20000+k), 6000, []byte("data"))))
		}},
	}
	vlan := func(kind uint16, b []byte) []byte {
		return ether(0x8100, binary.BigEndian.AppendUint16([]byte{0, 5}, kind))
	}
	_ = vlan
	for _, in := range inners {
		for _, tunnel := range []struct {
			name string
			make func(inner []byte) (uint8, []byte)
		}{
			{"IP", func(b []byte) (uint8, []byte) { return in.proto, b }},
			{"GRE", func(b []byte) (uint8, []byte) {
				return 47, append(binary.BigEndian.AppendUint16([]byte{0, 0}, in.ether), b...)
			}},
			{"GRE with a key", func(b []byte) (uint8, []byte) {
				return 47, slices.Concat(binary.BigEndian.AppendUint16([]byte{0x20, 0}, in.ether), []byte{0, 0, 0, 9}, b)
			}},
			{"NVGRE", func(b []byte) (uint8, []byte) {
				return 47, slices.Concat([]byte{0x20, 0, 0x65, 0x58, 0, 0, 9, 0}, ether(in.ether, b))
			}},
			{"VXLAN", func(b []byte) (uint8, []byte) {
				return 17, udp(999, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 7, 0}, ether(in.ether, b)))
			}},
			{"VXLAN, tagged", func(b []byte) (uint8, []byte) {
				return 17, udp(999, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 7, 0}, ether(0x8100, slices.Concat([]byte{0, 5}, binary.BigEndian.AppendUint16(nil, in.ether), b))))
			}},
			{"Geneve", func(b []byte) (uint8, []byte) {
				return 17, udp(999, 6081, slices.Concat(intmd.AppendGeneve(nil, 7, 0, in.ether), b))
			}},
			{"IP in IP", func(b []byte) (uint8, []byte) { return 4, ip4(in.proto, 0, 5, 6, b) }},
			{"IP in GRE", func(b []byte) (uint8, []byte) {
				return 47, slices.Concat([]byte{0, 0, 0x86, 0xdd}, ip6(in.proto, 0, 5, 6, b))
			}},
			{"a routing header", func(b []byte) (uint8, []byte) {
				return 43, slices.Concat([]byte{in.proto, 2, 4, 0, 0, 0, 0, 0}, make([]byte, 16), b)
			}},
		} {
			for _, destination := range []bool{false, true} {
				for _, around := range []string{"", "VXLAN", "a tag"} {
					list = append(list, sibling{fmt.Sprintf("%s in %s, destination %v, around %q", in.name, tunnel.name, destination, around), func(k, i int) []byte {
						proto, b := tunnel.make(in.make(k))
						x := trace(t, ioam.BitNodeID|ioam.BitInterfaces|ioam.BitTransitDelay, destination, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002)), proto, b)
						switch around {
						case "VXLAN":
							return ether(0x0800, ip4(17, 0, 77, 78, udp(888, 4789, slices.Concat([]byte{8, 0, 0, 0, 0, 0, 3, 0}, ether(0x86dd, x)))))
						case "a tag":
							return ether(0x8100, slices.Concat([]byte{0, 5, 0x86, 0xdd}, x))
						}
						return ether(0x86dd, x)
					}})
				}
			}
		}
	}
	for _, w := range ways() {
		if w.gre {
			continue
		}
		list = append(list, sibling{"INT-MD, " + w.name, func(k, i int) []byte {
			x := w.tail(func(h intmd.Header) []byte {
				return version{decode.V21, 0xf000}.stackOf(h, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002)))
			})
			at := bytes.LastIndex(x, []byte{5000 >> 8, 5000 & 0xff})
			binary.BigEndian.PutUint16(x[at:], uint16(20000+k))
			return x
		}})
	}
	var f frames
	const n = 3
	for i := range n {
		for k, x := range list {
			f = append(f, x.make(k, i))
		}
	}
	s := f.summary(t, "--flows", "10000")
	got := map[int]string{}
	for _, line := range seen(&s) {
		var src, dst string
		var k int
		if _, err := fmt.Sscanf(strings.Replace(line, ":2", " 2", 1), "flow %s %d > %s", &src, &k, &dst); err == nil && k >= 20000 {
			got[k-20000] = line
		} else if !strings.HasPrefix(line, "hop ") {
			t.Error(line)
		}
	}
	for k, x := range list {
		if want := fmt.Sprintf("by %d %d, %d packets, 0 changes", k*10+1001, k*10+1002, n); !strings.Contains(got[k], want) {
			t.Errorf("%s: %q, want %s", x.name, got[k], want)
		}
	}
}
