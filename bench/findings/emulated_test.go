package findings

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/loss"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// crossing is the compared packets of flows over one direction of a link, by window.
type crossing []struct{ packets, lost uint64 }

// comparison records the compared packets in the windows of an emulation.
type comparison struct {
	links   map[[2]uint32]crossing
	flows   map[decode.FlowKey]bool
	windows int
}

func (c *comparison) look(w *inference.Window) {
	c.windows++
	for i := range w.Losses {
		l := &w.Losses[i]
		c.flows[l.Flow] = true
		for k := 1; k < len(l.Path); k++ {
			link := [2]uint32{l.Path[k-1].Node, l.Path[k].Node}
			for len(c.links[link]) < c.windows {
				c.links[link] = append(c.links[link], struct{ packets, lost uint64 }{})
			}
			c.links[link][c.windows-1].packets += l.Packets
			c.links[link][c.windows-1].lost += l.Lost
		}
	}
}

// suffices reports whether enough of a link's compared packets were lost in a period of the loss detector that ends
// before a window. Periods have 2, 4, ... 512 windows, and each begins in the middle of the one before it.
func (c *comparison) suffices(from, to uint32, before int) bool {
	x := c.links[[2]uint32{from, to}]
	for length := 2; length <= 512; length *= 2 {
		for end := length / 2; end <= before; end += length / 2 {
			var packets, lost uint64
			for k := max(end-length, 0); k < min(end, len(x)); k++ {
				packets += x[k].packets
				lost += x[k].lost
			}
			if packets > 0 && lost >= loss.Needed(packets, events.DefaultConfig().SilentLoss, len(c.links)+len(c.flows)) {
				return true
			}
		}
	}
	return false
}

// What vanishes silently is found, and named, in the emulated network, wherever enough of it was compared for chance
// not to do the same. Of a flow that is enough wherever its packets are compared. Of a link it depends on the flows that cross it: of 0.1 % about 8
// lost of 15,000. Where the flows over a link are all of a host, or of a switch, the finding is at that end of their
// ways, and its text has the link. A link that loses packets once more may still have its finding of before.
func TestEmulatedLossesAreFound(t *testing.T) {
	testkit.Long(t)
	names := []string{"gray-failure-1", "gray-failure-0.1", "black-hole"}
	seeds, enough := testkit.Rounds(4, 16), 0
	for seed := uint64(3); seed < uint64(3+seeds); seed++ {
		c := comparison{links: map[[2]uint32]crossing{}, flows: map[decode.FlowKey]bool{}}
		e := NewEmulation(seed)
		e.Names, e.Quiet, e.Look = names, 40*time.Second, c.look
		o, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		network, err := e.config()
		if err != nil {
			t.Fatal(err)
		}
		silent := func(f *inference.Finding) bool {
			return f.Kind == inference.PacketLoss || f.Kind == inference.BlackHole
		}
		if slices.ContainsFunc(o.False, func(f inference.Finding) bool { return silent(&f) }) {
			t.Errorf("seed %d: before the first fault %+v", seed, o.False)
		}
		if len(o.Faults) != len(names) {
			t.Fatalf("seed %d: %d faults", seed, len(o.Faults))
		}
		for i := range o.Faults {
			fault, found := &o.Faults[i], 0
			named := func(of *FaultCauses, f *inference.Finding) bool {
				return of.names(f) || (f.Element.Kind == inference.NodeElement && (f.Node == of.Node || f.Node == of.Peer) &&
					strings.Contains(f.Text, fmt.Sprintf("the link from node %d to node %d", of.Node, of.Peer)))
			}
			for k := range fault.causes {
				switch f := &fault.causes[k]; {
				case !silent(f):
				case named(fault, f):
					found++
				case !slices.ContainsFunc(o.Faults[:i], func(past FaultCauses) bool { return named(&past, f) }): // published late
					t.Errorf("seed %d: %v: %s names %v: %s", seed, fault.Happening, f.Kind, f.Element, f.Text)
				}
			}
			began := network.Epoch.Add(fault.From).UnixNano()
			for _, past := range o.Faults[:i] {
				for k := range past.causes {
					if f := &past.causes[k]; silent(f) && fault.names(f) && (f.End == 0 || f.End > began) {
						found++
					}
				}
			}
			if fault.vanished == 0 {
				t.Errorf("seed %d: %v: nothing vanished", seed, fault.Happening)
			}
			must := fault.At == scenario.InFlow && c.flows[fault.flow]
			if fault.At == scenario.OnLink && c.suffices(fault.Node, fault.Peer, int((fault.Until+e.Pause)/e.Window)-1) {
				must = true
				enough++
			}
			if must && found == 0 {
				t.Errorf("seed %d: %v is not found", seed, fault.Happening)
			}
		}
	}
	if enough < seeds {
		t.Errorf("enough was compared over %d links with %d seeds", enough, seeds)
	}
}

// Causes of faults name the element, and few others are published: a bound for several seeds together that nothing
// was tuned to. It is below what a table of many seeds shows, as a few faults show little.
func TestEmulatedCauses(t *testing.T) {
	testkit.Long(t)
	happened, found, causes, right := 0, 0, 0, 0
	for seed := uint64(9001); seed <= 9003; seed++ {
		e := NewEmulation(seed)
		e.Names = []string{"link-down", "withdraw-route", "divert-flows", "silence-reports", "incast", "restart-reports"}
		o, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tallies := map[string]*tally{}
		c, err := e.config()
		if err != nil {
			t.Fatal(err)
		}
		o.Add(tallies, c.Epoch.UnixNano())
		for _, name := range e.Names {
			s := tallies[name]
			happened, found, causes, right = happened+s.happens, found+s.Found, causes+s.Causes, right+s.right
			if s.Found < s.happens || s.right < s.Causes {
				t.Logf("seed %d: %s found %d of %d, besides %s", seed, name, s.Found, s.happens, counts(s.wrong))
			}
		}
	}
	if happened != 18 || found < 16 {
		t.Errorf("%d of %d faults found, want 16 of 18", found, happened)
	}
	if 10*right < 7*causes {
		t.Errorf("%d of %d causes name the element, want 7 of 10", right, causes)
	}
}

// The same seed gives the same outcome, and every fault of the table happens once, with a pause after it.
func TestEmulationRepeats(t *testing.T) {
	e := NewEmulation(7)
	e.Names, e.Quiet, e.Pause = []string{"restart-reports", "deny-flows"}, 5*time.Second, 5*time.Second
	one, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	two, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(o *outcome) string {
		var b strings.Builder
		for i := range o.Faults {
			b.WriteString(o.Faults[i].String())
			for _, f := range o.Faults[i].causes {
				b.WriteString(f.Text)
			}
		}
		return b.String()
	}
	if one.Reports == 0 || one.Reports != two.Reports || text(one) != text(two) {
		t.Errorf("%d reports, %s\nthen %d, %s", one.Reports, text(one), two.Reports, text(two))
	}
	c, err := e.config()
	if err != nil {
		t.Fatal(err)
	}
	e.Names = nil
	all, _, err := e.happenings(c)
	if err != nil || len(all) != len(scenario.Troubles()) {
		t.Fatalf("%d faults, %v; the table has %d", len(all), err, len(scenario.Troubles()))
	}
	for i := 1; i < len(all); i++ {
		if all[i].From < all[i-1].Until+e.Pause {
			t.Errorf("%v follows %v", all[i], all[i-1])
		}
	}
	e.Names = []string{"earthquake"}
	if _, err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"earthquake"`) {
		t.Errorf("a fault that is not in the table: %v", err)
	}
}

// An element is named by itself, and of a link by either of its interfaces; its neighbours are something else.
func TestNamesTheElement(t *testing.T) {
	flow := decode.FlowKey{SrcPort: 7, IPVersion: 4}
	happening := func(at scenario.Place, node, port, peer, peerPort uint32) *FaultCauses {
		return &FaultCauses{Happening: &scenario.Happening{Trouble: &scenario.Trouble{At: at}, Node: node, Port: port, Peer: peer, PeerPort: peerPort}, flow: flow}
	}
	hop := func(node, port uint32) inference.Element {
		return inference.ElementOfHop(inference.HopKey{Node: node, EgressIf: port})
	}
	link, node, port := happening(scenario.OnLink, 9, 3, 2, 1), happening(scenario.AtSwitch, 9, 0, 0, 0), happening(scenario.AtPort, 9, 3, 0, 0)
	sender, one := happening(scenario.AtSender, 9, 0, 0, 0), happening(scenario.InFlow, 9, 0, 0, 0)
	for _, c := range []struct {
		reported *FaultCauses
		e        inference.Element
		want     bool
	}{
		{link, inference.ElementOfLink(2, 9), true}, {link, hop(9, 3), true}, {link, hop(2, 1), true},
		{link, inference.ElementOfLink(2, 8), false}, {link, hop(9, 4), false}, {link, inference.ElementOfNode(9), false}, {link, inference.Element{}, false},
		{node, inference.ElementOfNode(9), true}, {node, inference.ElementOfNode(8), false}, {node, hop(9, 3), false},
		{port, hop(9, 3), true}, {port, hop(9, 2), false}, {port, inference.ElementOfNode(9), false},
		{sender, inference.ElementOfExporter(inference.ExporterKey{Node: 9}), true}, {sender, inference.ElementOfExporter(inference.ExporterKey{Node: 8}), false},
		{one, inference.ElementOfFlow(flow), true}, {one, inference.ElementOfNode(9), true}, {one, inference.ElementOfFlow(decode.FlowKey{}), false},
	} {
		f := inference.Finding{Element: c.e, Node: 99}
		if got := c.reported.names(&f); got != c.want {
			t.Errorf("%v named by %v: %v", c.reported.At, c.e, got)
		}
	}
}

// The package comment shows the table as it is.
func TestCommentHasTheTable(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range scenario.Troubles() {
		element, reported := f.At.String(), "nothing"
		if len(f.Kinds) > 0 {
			reported = "`" + strings.Join(f.Kinds, "`, `") + "`"
		} else {
			element = "–"
		}
		if row := fmt.Sprintf("| `%s` | %s | %.0f s | %s | %s |\n", f.Name, f.What, f.For.Seconds(), element, reported); !strings.Contains(string(page), row) {
			t.Errorf("doc.go lacks the line\n%s", row)
		}
	}
}
