package scenario

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/p4/p4rt"
)

// TestInto sends packets through switches with their fixed entries alone: one of eight is reported, with the whole path.
func TestInto(t *testing.T) {
	x, err := NewInto()
	if err != nil {
		t.Fatal(err)
	}
	ids := x.NodeIDs()
	for n := range ids {
		var updates []p4rt.Update
		for _, e := range x.Fixed(n) {
			op := p4rt.Insert
			if e.Default() {
				op = p4rt.Modify
			}
			e.Owner = "test"
			updates = append(updates, p4rt.Update{Op: op, Entry: e})
		}
		if errs, err := x.Installer(n).Write(t.Context(), updates); err != nil || errs != nil {
			t.Fatalf("switch %d: %v %v", n, errs, err)
		}
		got, err := x.Installer(n).Read(t.Context())
		if err != nil || len(got) < len(updates) {
			t.Fatalf("switch %d holds %d entries of %d: %v", n, len(got), len(updates), err)
		}
	}
	profile, _ := demux.Lookup("auto")
	d := demux.New(profile)
	const rounds = 200
	reports, seen := 0, map[[2]uint32]bool{}
	for range rounds {
		list, err := x.step()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			var batch decode.Batch
			d.Datagram(&batch, decode.Addr{}, r.Bytes, 1)
			if len(batch.Reports) != 1 || batch.Reports[0].Err.Reason != 0 {
				t.Fatalf("report %x: %+v", r.Bytes, batch.Reports)
			}
			reports++
			hops := batch.Reports[0].Hops
			if len(hops) != 3 {
				t.Errorf("a flow passes %d switches", len(hops))
			}
			for _, h := range hops {
				seen[[2]uint32{h.NodeID, uint32(h.EgressIf)}] = true
			}
		}
	}
	if n := intoFlows * rounds / 8; reports < n*7/10 || reports > n*13/10 {
		t.Errorf("%d reports, want about %d", reports, n)
	}
	if len(seen) != 2*8+4 { // both directions of links, and hosts
		t.Errorf("%d interfaces are reported, want 20: %v", len(seen), seen)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Installer(0).Read(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a read that is given up: %v", err)
	}
	if err := x.Play(gone, netip.MustParseAddrPort("127.0.0.1:9")); err != nil {
		t.Errorf("a play that is given up: %v", err)
	}
}
