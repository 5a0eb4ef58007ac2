package findings

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/cause"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// counted are the kinds of causes whose symptoms are counted, with the faults of the table that they are counted in.
// A node that is down is made of failures of all its links and the silence of its reports.
var counted = []struct {
	name   string
	on     inference.ElementKind
	faults []string
}{
	{"interface congested", inference.InterfaceElement, []string{"congested-line", "cut-rate", "microburst", "slow-drain", "incast"}},
	{"link down", inference.LinkElement, []string{"link-down", "flapping-link"}},
	{"link lossy", inference.LinkElement, []string{"gray-failure-1", "gray-failure-0.1"}},
	{"link longer", inference.LinkElement, []string{"asymmetric-latency"}},
	{"loop", inference.LinkElement, []string{"routing-loop"}},
	{"node slow", inference.NodeElement, []string{"slow-switch"}},
	{"node refuses packets", inference.NodeElement, []string{"deny-flows", "withdraw-route"}},
	{"node takes another way", inference.NodeElement, []string{"divert-flows"}},
	{"node writes wrong digests", inference.NodeElement, []string{"forge-digests"}},
	{"node down", inference.NodeElement, []string{nodeDown}},
	{"exporter silent", inference.ExporterElement, []string{"silence-reports"}},
	{"exporter loses reports", inference.ExporterElement, []string{"lose-reports"}},
	{"flow vanishes", inference.FlowElement, []string{"black-hole"}},
}

const nodeDown = "node-down"

// symptomsAfter is how many windows after the first finding of a fault its symptoms are counted.
const symptomsAfter = 2

// runSymptoms counts where the faults of the emulated network show, and prints the content of
// inference/cause/faults.go.
func runSymptoms(ctx context.Context, out io.Writer, o options) error {
	sums := make([][cause.NumWheres][cause.NumSigns]cause.Observation, len(counted))
	happened := make([]int, len(counted))
	var elsewhere cause.Observation // signs at places before the first fault, and how many could have shown them
	for seed := range uint64(o.Seeds) {
		if err := countSymptoms(ctx, o.Seed+seed, sums, happened, &elsewhere); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "// leak is the probability that a place shows a sign without any of the causes: %d of %d before the first fault.\nconst leak = %.2g\n\n",
		elsewhere.Shown, elsewhere.Of, (float64(elsewhere.Shown)+.5)/(float64(elsewhere.Of)+1))
	fmt.Fprintf(out, "var Faults = []Fault{\n")
	for i, c := range counted {
		fmt.Fprintf(out, "\t{%q, inference.%sElement, %d, []Symptom{\n", c.name, [...]string{"No", "Node", "Interface", "Link", "Exporter", "Flow"}[c.on], happened[i])
		for w := range sums[i] {
			for s, x := range sums[i][w] {
				if 20*x.Shown >= x.Of && x.Shown > 0 && (x.Shown > 1 || o.Seeds < 4) {
					fmt.Fprintf(out, "\t\t{%s, %s, %d, %d},\n", whereNames[w], signNames[s], x.Shown, x.Of)
				}
			}
		}
		fmt.Fprint(out, "\t}},\n")
	}
	fmt.Fprint(out, "}\n")
	return nil
}

var (
	whereNames = [...]string{"AtIt", "Ports", "Towards", "Links", "Ends", "Reports"}
	signNames  = [...]string{"Slow", "Queues", "More", "Drops", "Vanish", "OtherWays", "Fewer", "Silent", "Unreported", "ReportsLost", "Strange", "Loops"}
)

func countSymptoms(ctx context.Context, seed uint64, sums [][cause.NumWheres][cause.NumSigns]cause.Observation, happened []int, elsewhere *cause.Observation) error {
	e := NewEmulation(seed)
	e.Names = nil
	for _, c := range counted {
		for _, name := range c.faults {
			if name == nodeDown {
				name = "divert-flows" // whose place it takes, once more
			} else {
				e.Names = append(e.Names, name)
			}
		}
	}
	down := NewEmulation(seed)
	down.Names = []string{"divert-flows"}
	down.Break = failNode
	for _, x := range []*Emulation{&e, &down} {
		if err := x.symptoms(ctx, x == &down, sums, happened, elsewhere); err != nil {
			return err
		}
	}
	return nil
}

// failNode makes the failure of a node from the events at it.
func failNode(n *emu.Network, h *scenario.Happening) {
	g := n.Graph()
	at := 0
	for i := range g.NumNodes() {
		if n.NodeID(i) == h.Node {
			at = i
		}
	}
	name := g.NodeName(at)
	h.Script = nil
	lo, hi := g.Interfaces(at)
	link, _ := scenario.Lookup("link-down")
	one, err := link.Happen(n, h.From, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		return
	}
	for i := lo; i < hi; i++ {
		if g.Neighbor(i) < 0 { // a host is behind it
			continue
		}
		f := one.Script[0]
		f.Node, f.Peer, f.At, f.For = name, g.NodeName(g.Neighbor(i)), h.From, h.Until-h.From
		h.Script = append(h.Script, f)
	}
	h.Script = append(h.Script, emu.Fault{Kind: emu.SilenceReports, At: h.From, For: h.Until - h.From, Node: name})
}

// symptoms counts them in one emulation.
func (e *Emulation) symptoms(ctx context.Context, down bool, sums [][cause.NumWheres][cause.NumSigns]cause.Observation, happened []int, elsewhere *cause.Observation) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	all, _, err := e.happenings(c)
	if err != nil {
		return err
	}
	var network *emu.Network
	e.Built = func(n *emu.Network, _ []*scenario.Happening) { network = n }
	detector := events.New(analysis().Events)
	at, since := -1, -1 // fault, and windows since its first finding
	var begun []inference.Finding
	_, err = e.Windows(ctx, func(epoch int64, w *inference.Window) {
		now := time.Duration(w.End - epoch)
		findings := detector.Step(w)
		if now <= all[0].From {
			if scene := detector.Scene(); now > e.Quiet*2/3 {
				for _, f := range detector.Open() {
					scene.Show(&f)
				}
				for i := range w.Hops {
					x := scene.Observe(inference.ElementOfHop(w.Hops[i].HopKey))[cause.AtIt]
					for s := range x {
						elsewhere.Shown += x[s].Shown
						elsewhere.Of += x[s].Of
					}
				}
			}
			return
		}
		if at+1 < len(all) && now > all[at+1].From {
			at, since, begun = at+1, -1, nil
		}
		for _, f := range findings {
			if f.End == 0 && f.Evidence == 0 && f.Start > epoch+int64(all[at].From) {
				begun = append(begun, f)
			}
		}
		if len(begun) == 0 {
			return
		}
		if since++; since != symptomsAfter {
			return
		}
		scene := detector.Scene()
		for i := range begun {
			scene.Show(&begun[i])
		}
		for i := range counted {
			name := all[at].Name
			if down {
				name = nodeDown
			}
			if slices.Contains(counted[i].faults, name) {
				happened[i]++
				o := scene.Observe(truth(counted[i].on, all[at], network))
				for w := range o {
					for s := range o[w] {
						sums[i][w][s].Shown += o[w][s].Shown
						sums[i][w][s].Of += o[w][s].Of
					}
				}
			}
		}
	})
	return err
}

// truth is the element that a fault happened at.
func truth(kind inference.ElementKind, h *scenario.Happening, n *emu.Network) inference.Element {
	switch kind {
	case inference.InterfaceElement:
		return inference.ElementOfHop(inference.HopKey{Node: h.Node, EgressIf: h.Port})
	case inference.LinkElement:
		return inference.ElementOfLink(h.Node, h.Peer)
	case inference.ExporterElement:
		return inference.Element{Kind: inference.ExporterElement, Node: h.Node}
	case inference.FlowElement:
		return inference.ElementOfFlow(n.FlowKey(h.Flow))
	}
	return inference.ElementOfNode(h.Node)
}
