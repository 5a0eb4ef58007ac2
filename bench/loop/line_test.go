package loop

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/bench/findings"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
)

// TestOneDeadLine: while one line of a fat-tree is dead, from the third cycle on, its two directions are suspected.
// Other directions are suspected only if packets truly took longer there, within the cycles that a suspicion outlasts
// its evidence. The dead line explains flows on other paths, drops where it ends, and times of the remaining packets.
// Soon after its end none is. The gate has the seeds that failed once, and others.
func TestOneDeadLine(t *testing.T) {
	testkit.Long(t)
	seeds := []uint64{2005, 2009, 2012, 2001, 2002, 2003, 2004, 2006, 2007, 2008, 2010, 2011}
	for seed := uint64(2013); seed <= 2050; seed++ {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds[:testkit.Rounds(5, len(seeds))] {
		e := findings.NewEmulation(seed)
		e.Names = []string{"link-down"}
		d := &detection{emulation: &e, out: &Detection{}, detector: events.New(findings.EventsConfig())}
		e.Tune, e.Built, e.Probe = d.tune, d.built, func(g emu.Datagram) { d.receiver.receive(g) }
		suspected, slow, later := map[int32]string{}, map[int32]time.Duration{}, time.Duration(0)
		holds := time.Duration(suspicion.DefaultConfig().ClearAfter) * e.Window
		_, err := e.Windows(t.Context(), func(epoch int64, w *inference.Window) {
			d.window(epoch, w)
			f, now := d.out.faults[0], time.Duration(w.End-epoch)
			for _, s := range d.suspects.found[oursAll-oursRounds] {
				i, _ := d.suspects.links.Lookup(s.Link)
				l := int32(i)
				if now > f.From {
					later = now - f.Until
				}
				if d.truth.troubled(l) {
					slow[l] = now
				}
				if at, was := slow[l]; now > f.From+2*e.Window && now <= f.Until && (!was || now-at > holds) {
					suspected[l] = s.Why
				}
			}
		})
		if err != nil || d.err != nil {
			t.Fatal(err, d.err)
		}
		f := d.out.faults[0]
		for _, l := range f.Links {
			if suspected[l] == "" {
				t.Errorf("seed %d: %s is dead and not suspected", e.Seed, d.suspects.links.Name(int(l)))
			}
		}
		for l, why := range suspected {
			if !slices.Contains(f.Links, l) {
				t.Errorf("seed %d: %s is suspected, and dead is %s: %s", e.Seed, d.suspects.links.Name(int(l)), d.suspects.links.Name(int(f.Links[0])), why)
			}
		}
		if later > 20*time.Second {
			t.Errorf("seed %d: %v after its end something is suspected", e.Seed, later)
		}
	}
}
