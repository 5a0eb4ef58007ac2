package main_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/ioam"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// A hop without an id is no node 0, on no path, and is apart by its exporter and its place, whatever wrote it.
func TestSiblingsNameless(t *testing.T) {
	type sibling struct {
		name string
		make func(k, i int) []byte
	}
	var list []sibling
	for _, v := range []version{{decode.V05, 0x5000}, {decode.V10, 0x5000}, {decode.V10, 0x1000}, {decode.V21, 0x5000}, {decode.V21, 0x7000}, {decode.V21, 0x1000}} {
		for _, w := range ways() {
			if w.gre || w.only21 && v.v != decode.V21 {
				continue
			}
			packet := func(k, i int) []byte {
				hops := hopsOf(i, 0, 0, 0)
				for j := range hops {
					hops[j].QueueOccupancy = uint32(1000*(k+1) + 100*j)
				}
				return w.tail(func(h intmd.Header) []byte { return v.stackOf(h, hops) })
			}
			for _, rv := range []decode.Version{decode.V10, decode.V20} {
				list = append(list, sibling{fmt.Sprintf("report %v, %v, %s", rv, v, w.name), func(k, i int) []byte {
					return reportFrame(source(k), 32766, reportOf(rv, i, decode.Tracked, packet(k, i)))
				}})
			}
		}
	}
	const n, most = 3, 80 // members at a time: exporters and places without names are bounded
	for list := range slices.Chunk(list, most) {
		var f frames
		for i := range n {
			for k, x := range list {
				f = append(f, x.make(k, i))
			}
		}
		s := f.summary(t, "--flows", "10000", "--hops", "100000")
		_, said := counts(&s)
		for _, h := range s.Hops {
			if h.NodeID == 0 {
				t.Errorf("node 0 has %d reports", h.Reports)
			}
		}
		for _, x := range s.Flows {
			for _, id := range x.Path.NodeIDs {
				if id != nil && *id == 0 {
					t.Errorf("node 0 is on the path of %v", x.Flow)
				}
			}
		}
		got := map[string]summary.Nameless{}
		for _, x := range s.Nameless {
			got[fmt.Sprint(x.Exporter, " ", x.Position)] = x
		}
		for k, x := range list {
			src := source(k)
			address := fmt.Sprintf("%d.%d.%d.%d", src[0], src[1], src[2], src[3])
			if said[address+" nameless-hops"] != 3*n {
				t.Errorf("%s: said of %d hops", x.name, said[address+" nameless-hops"])
			}
			for j := range 3 {
				h := got[fmt.Sprint(address, " ", j+1)]
				if q := float64(1000*(k+1) + 100*j); h.Reports != n || h.Queue == nil || float64(h.Queue.P50) < .95*q || float64(h.Queue.Max) > 1.05*q {
					t.Errorf("%s: position %d is %+v, %+v, want queue %g", x.name, j+1, h, h.Queue, q)
				}
			}
		}
	}
}

// A hop without an id in a packet of the network has no exporter: its place alone is known. Delays on the way are of no hop.
func TestSiblingsNamelessPackets(t *testing.T) {
	type sibling struct {
		name string
		make func(k, i int, hops []decode.Hop) []byte
	}
	var list []sibling
	for _, v := range []version{{decode.V05, 0x5000}, {decode.V10, 0x5000}, {decode.V10, 0x1000}, {decode.V21, 0x5000}, {decode.V21, 0x7000}, {decode.V21, 0x1000}} {
		list = append(list, sibling{v.String(), func(k, i int, hops []decode.Hop) []byte {
			x := version{v.v, v.bitmap}.stackOf(intmd.Header{Proto: 17, Original: 6000}, hops)
			return ether(0x0800, ip4(17, 0x17<<2, 9, 8, udp(uint16(20000+k), 6000, append(x, "data"...))))
		}})
	}
	for _, kind := range []uint32{ioam.BitQueueDepth, ioam.BitInterfaces | ioam.BitQueueDepth, ioam.BitTransitDelay | ioam.BitQueueDepth, ioam.BitInterfacesWide | ioam.BitQueueDepth} {
		list = append(list, sibling{fmt.Sprintf("IOAM %#x", kind), func(k, i int, hops []decode.Hop) []byte {
			return ether(0x86dd, trace(t, kind, false, hops, 17, udp(uint16(20000+k), 6000, []byte("data"))))
		}})
	}
	const n = 3
	for k, x := range list {
		var f frames
		for i := range n {
			hops := hopsOf(i, 0, 0, 0)
			for j := range hops {
				hops[j].QueueOccupancy = uint32(1000*(i+1) + 100*j)
			}
			f = append(f, x.make(k, i, hops))
		}
		s := f.summary(t)
		_, said := counts(&s)
		if len(s.Hops) > 0 || said[" nameless-hops"] != 3*n || len(s.Nameless) != 3 {
			t.Errorf("%s: %d hops, said of %d, places %+v", x.name, len(s.Hops), said[" nameless-hops"], s.Nameless)
			continue
		}
		for j, h := range s.Nameless {
			if h.Exporter != "" || int(h.Position) != j+1 || h.Reports != n || h.Queue == nil {
				t.Errorf("%s: %+v", x.name, h)
			}
		}
	}
	var f frames
	for i := range n {
		m := ipfix.Message{Version: ipfix.V10, Domain: 1, Time: uint32(1_700_000_000 + i), Seq: uint32(i)}
		template := decode.Template{Version: ipfix.V10, ID: 256, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 2, Length: 4}, {ID: 530, Length: 4}}}
		f = append(f, reportFrame(source(7), 4739, ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
			b = ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
			return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte {
				return append(b, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 100)
			})
		})))
	}
	s := f.summary(t)
	if len(s.Hops) > 0 || len(s.Nameless) > 0 {
		t.Errorf("delays on the way: hops %+v, places %+v", s.Hops, s.Nameless)
	}
}
