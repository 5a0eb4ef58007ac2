package main_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
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
