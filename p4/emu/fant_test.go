package emu

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/intmd"
)

// Switches of FANT write stacks that its profile reads, with both bitmaps, and that a strict reader rejects for their width
// where they are detailed.
func TestFANT(t *testing.T) {
	for _, tt := range []struct {
		bitmap  uint16
		perHop  int
		strict  bool
		present decode.HopField
	}{
		{0xf161, 32, true, decode.HopNodeID | decode.HopLatency | decode.HopTxUtilization},
		{0xffff, 88, false, decode.HopNodeID | decode.HopEgressTime | decode.HopL2EgressIf | decode.HopBufferOccupancy},
	} {
		cfg := DefaultConfig()
		cfg.Dialect, cfg.Instructions, cfg.MaxHops, cfg.MaxPacketBytes = FANT, tt.bitmap, 6, 800
		if got := 4 * cfg.hopWords(FANT); got != tt.perHop {
			t.Errorf("%#04x: %d bytes a hop, want %d", tt.bitmap, got, tt.perHop)
		}
		n, stacks := mustNew(t, cfg, 5), 0
		fant, auto := demux.New(profile(t, "fant")), demux.New(profile(t, "auto"))
		n.Run(100*time.Millisecond, func(d Datagram) {
			var b, strict decode.Batch
			fant.Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
			auto.Datagram(&strict, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
			for k, r := range b.Reports {
				if err := r.Error(); err != nil {
					t.Fatalf("%#04x: %v", tt.bitmap, err)
				}
				if r.Kind != decode.KindStack {
					continue
				}
				stacks++
				if r.DomainID != intmd.FANTDomain || r.Instructions != tt.bitmap || len(r.Hops) == 0 {
					t.Fatalf("%#04x: domain %#04x, %#04x, %d hops", tt.bitmap, r.DomainID, r.Instructions, len(r.Hops))
				}
				for _, h := range r.Hops {
					if !h.Set(tt.present) {
						t.Fatalf("%#04x: a hop has %v", tt.bitmap, h.Has.Names())
					}
				}
				if got := strict.Reports[k].Error() == nil; got != tt.strict {
					t.Fatalf("%#04x: a strict reader says %v", tt.bitmap, strict.Reports[k].Error())
				}
			}
		})
		if stacks < 100 {
			t.Errorf("%#04x: %d stacks", tt.bitmap, stacks)
		}
	}
	cfg := DefaultConfig()
	cfg.Dialect, cfg.Instructions = FANT, 0xffff
	cfg.Dialects = map[string]Dialect{"core-0": Off}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Dialects["core-1"] = md21
	if cfg.Validate() == nil {
		t.Error("INT 2.1 takes the bits that FANT alone knows")
	}
}
