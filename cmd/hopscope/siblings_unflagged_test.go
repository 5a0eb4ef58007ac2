package main_test

import (
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

// Contents of a report whose F is not set are named, and the suggested profile reads what it has with F set.
func TestSiblingsUnflagged(t *testing.T) {
	type sibling struct {
		name  string
		rep   decode.Version
		flags decode.Flags
		v     version
		w     way
	}
	var list []sibling
	for _, rv := range []decode.Version{decode.V05, decode.V10, decode.V20} {
		for _, flags := range []decode.Flags{0, decode.Dropped, decode.Congested} {
			for _, v := range versions {
				for _, w := range ways() {
					if w.gre || w.only21 && v.v != decode.V21 {
						continue
					}
					list = append(list, sibling{fmt.Sprintf("report %v flags %v, %v, %s", rv, flags, v, w.name), rv, flags, v, w})
				}
			}
		}
	}
	var off, on frames
	const n = 4
	for k, x := range list {
		for i := range n {
			f := x.w.tail(func(h intmd.Header) []byte { return x.v.stackOf(h, hopsOf(i, uint32(k*10+1001), uint32(k*10+1002))) })
			off = append(off, reportFrame(source(k), 32766, reportOf(x.rep, i, x.flags, f)))
			on = append(on, reportFrame(source(k), 32766, reportOf(x.rep, i, x.flags|decode.Tracked, f)))
		}
	}
	a, b, c := off.summary(t, "--hops", "100000"), on.summary(t, "--hops", "100000"), off.summary(t, "--profile", "auto-unflagged", "--hops", "100000")
	_, said := counts(&a)
	flagged, _ := counts(&b)
	unflagged, _ := counts(&c)
	for k, x := range list {
		src := source(k)
		at := fmt.Sprintf("%d.%d.%d.%d unflagged-int", src[0], src[1], src[2], src[3])
		if said[at] != n {
			t.Errorf("%s: said of %d", x.name, said[at])
		}
		for i := range 2 {
			if id := uint32(k*10 + 1001 + i); flagged[id] != n || unflagged[id] != n {
				t.Errorf("%s: node %d has %d reports with F, %d by auto-unflagged", x.name, id, flagged[id], unflagged[id])
			}
		}
	}
}
