package steer

import (
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/p4/stamp"
)

// TestLossyLinks names the link that all ways with losses cross, and those that cannot be distinguished from it. Losses
// of a single port are no link's.
func TestLossyLinks(t *testing.T) {
	at := netip.MustParseAddr
	way := func(port uint16, lost uint64, hops ...string) WayLoss {
		x := WayLoss{Way: stamp.Way{From: at("10.0.0.1"), To: at("10.0.0.2"), Port: port}, Sent: 1000, Lost: lost}
		for _, h := range hops {
			x.Hops = append(x.Hops, at(h))
		}
		return x
	}
	list := []WayLoss{way(1, 20, "10.1.0.1", "10.2.0.1"), way(2, 0, "10.1.0.2", "10.2.0.1"), way(3, 15, "10.1.0.1", "10.2.0.2"), way(4, 0, "10.1.0.2", "10.2.0.2")}
	got := LossyLinks(list, stamp.ByInterface)
	if len(got) != 1 || got[0].Link.To != at("10.1.0.1") || got[0].Lost != 35 || got[0].Sent != 2000 || got[0].Confidence < .99 || len(got[0].Rivals) != 0 {
		t.Errorf("%+v", got)
	}
	for i := range list { // two links one after the other, without another way between them
		hops := list[i].Hops
		list[i].Hops = []netip.Addr{hops[0], hops[0].Next().Next().Next().Next(), hops[1]}
	}
	got = LossyLinks(list, stamp.ByInterface)
	if len(got) != 1 || len(got[0].Rivals) != 1 || got[0].Confidence > .6 {
		t.Errorf("two links that all ways have in common: %+v", got)
	}
	if got := LossyLinks([]WayLoss{way(1, 0, "10.1.0.1"), way(2, 1, "10.1.0.2")}, stamp.ByInterface); len(got) != 0 {
		t.Errorf("one probe of one way: %+v", got)
	}
}
