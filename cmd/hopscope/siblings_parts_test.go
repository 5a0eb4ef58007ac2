package main_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// A part of a path is no other path, whatever part, in whatever order, with the node that a loop passes twice.
func TestSiblingsParts(t *testing.T) {
	type sibling struct {
		name  string
		views [][2]int // of the path, from one place to another
		path  []uint32
	}
	var list []sibling
	for n := 2; n <= 7; n++ {
		for _, loop := range []bool{false, true} {
			path := make([]uint32, n)
			for i := range path {
				path[i] = uint32(i + 1)
			}
			if loop {
				if n < 4 {
					continue
				}
				path[2] = path[0] // 1 2 1 4 ...
			}
			parts := map[string][2]int{"prefix": {0, n - 1}, "suffix": {1, n}, "first": {0, 1}, "last": {n - 1, n}}
			all := [2]int{0, n}
			if n > 2 {
				parts["middle"] = [2]int{1, n - 1}
				parts["one inside"] = [2]int{1, 2}
			}
			if n > 3 {
				parts["short prefix"] = [2]int{0, 2}
				parts["short suffix"] = [2]int{n - 2, n}
			}
			maps.DeleteFunc(parts, func(_ string, v [2]int) bool { return path[v[0]] == path[0] && path[v[1]-1] == path[n-1] }) // the way without the loop
			for name, part := range parts {
				list = append(list, sibling{fmt.Sprintf("%d nodes, loop %v, %s, then all", n, loop, name), [][2]int{part, all}, path},
					sibling{fmt.Sprintf("%d nodes, loop %v, all, then %s", n, loop, name), [][2]int{all, part}, path},
					sibling{fmt.Sprintf("%d nodes, loop %v, %s twice, then all", n, loop, name), [][2]int{part, part, all}, path})
			}
			if n > 2 {
				list = append(list, sibling{fmt.Sprintf("%d nodes, loop %v, growing", n, loop), func() (v [][2]int) {
					for i := range path {
						v = append(v, [2]int{0, i + 1})
					}
					return v
				}(), path}, sibling{fmt.Sprintf("%d nodes, loop %v, growing from the end", n, loop), func() (v [][2]int) {
					for i := range path {
						if i == n-1 || path[n-1-i] != path[0] {
							v = append(v, [2]int{n - 1 - i, n})
						}
					}
					return v
				}(), path})
			}
		}
	}
	const n = 8
	for _, kind := range []string{"0.5", "1.0", "2.1", "IOAM", "report"} {
		var f frames
		for i := range n {
			for k, x := range list {
				for _, view := range x.views {
					all := make([]uint32, len(x.path))
					for j, id := range x.path {
						all[j] = uint32(k*10+1000) + id
					}
					hops := hopsOf(i, all...)[view[0]:view[1]]
					v := map[string]version{"0.5": {decode.V05, 0xc000}, "1.0": {decode.V10, 0xc000}, "2.1": {decode.V21, 0xe000}, "report": {decode.V21, 0xa000}}[kind]
					if kind == "IOAM" {
						f = append(f, ether(0x86dd, trace(t, ioam.BitNodeID|ioam.BitInterfaces, false, hops, 17, udp(uint16(20000+k), 6000, []byte("data")))))
						continue
					}
					h := intmd.Header{Proto: 17, Original: 6000}
					x := ether(0x0800, ip4(17, 0x17<<2, 9, 8, udp(uint16(20000+k), 6000, append(v.stackOf(h, hops), "data"...))))
					if kind == "report" {
						x = reportFrame([4]byte{192, 0, 2, 7}, 32766, append(telemetry.Append10(nil, &telemetry.Header{HWID: 1, Seq: uint32(len(f)), NodeID: 99, Flags: decode.Tracked, Inner: telemetry.InnerEthernet}), x...))
					}
					f = append(f, x)
				}
			}
		}
		s := f.summary(t, "--flows", "10000")
		got := map[int]string{}
		for _, line := range seen(&s) {
			var src, dst string
			var k int
			if _, err := fmt.Sscanf(strings.Replace(line, ":2", " 2", 1), "flow %s %d > %s", &src, &k, &dst); err == nil && k >= 20000 {
				got[k-20000] = line
			} else if strings.HasPrefix(line, "finding") {
				t.Errorf("%s: %s", kind, line)
			}
		}
		for k, x := range list {
			var ids []string
			for _, id := range x.path {
				ids = append(ids, fmt.Sprint(uint32(k*10+1000)+id))
			}
			packets := n
			switch {
			case kind == "report": // each counts
				packets *= len(x.views)
			case strings.Contains(x.name, "twice"): // at one place: nothing in them differs from that of the next packet
				packets *= 2
			}
			if want := fmt.Sprintf("by %s, %d packets, 0 changes", strings.Join(ids, " "), packets); !strings.Contains(got[k], want) {
				t.Errorf("%s, %s: %q, want %s", kind, x.name, got[k], want)
			}
		}
	}
}
