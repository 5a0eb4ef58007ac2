package findings

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// Emulation is an emulated network with the faults of the table, one after the other, and a collector in the same
// virtual time. The seed draws the order of the faults and their places.
type Emulation struct {
	Seed   uint64
	Names  []string      // of the troubles, each once; all of them if there are none
	Window time.Duration // of the collector
	Quiet  time.Duration // before the first fault, for the detectors to learn
	Pause  time.Duration // after each fault, for the network to recover and for findings to come and end

	Look func(*inference.Window) // is given each window before the detectors, if it is not nil

	// For other measurements on the same faults; nil for nothing:
	Tune  func(*emu.Config)                               // changes the network before it is built
	Break func(n *emu.Network, h *scenario.Happening)     // makes another fault of one, at its place
	Built func(n *emu.Network, all []*scenario.Happening) // is given the network, which has not begun, and what will happen
	Probe func(emu.Datagram)                              // is given probes, which the collector does not take
}

// NewEmulation has windows of a second, and as many of them before the first fault as hops take to learn.
func NewEmulation(seed uint64) Emulation {
	return Emulation{Seed: seed, Window: time.Second, Quiet: 380 * time.Second, Pause: 30 * time.Second}
}

// outcome is the findings in an emulation.
type outcome struct {
	Faults   []FaultCauses
	False    []inference.Finding // causes that began before the first fault
	Reports  uint64
	Open     []inference.Finding // causes at the end
	Evidence []inference.Finding // findings that have a cause
	Learning []inference.Finding // causes at hops that are still being learnt, which are held back
	Before   []int               // findings of the others before the first fault
}

// FaultCauses is a fault with the causes that began from its beginning until the next one's.
type FaultCauses struct {
	*scenario.Happening
	flow     decode.FlowKey // InFlow: its key
	vanished uint64         // packets that were lost silently
	denied   uint64         // packets that access lists dropped
	Idle     bool           // it met no packet: nothing happened
	causes   []inference.Finding
	others   []versus // how the others fared with it
}

// lineRate is that of all lines, in bits a second.
const lineRate = 5e6

// config is the network of the demonstration without its script: INT from most flows, PINT digests from three of ten,
// and postcards from one of the switches. First switches report, too. Losses are located by the identification of
// packets, which IPv6 has not, so that all flows are IPv4. Flows last: places are drawn on the ways that they take.
func (e *Emulation) config() (emu.Config, error) {
	c, err := scenario.PINTDemo()
	c.Script, c.Repeat, c.Probes = nil, 0, nil
	c.SourceReports, c.IPv6Share, c.FlowPackets = true, 0, 0
	c.LinkRate, c.QueueBytes, c.PacketRate, c.Flows = lineRate, 32_000, 2000, 100 // half of it, at the same load
	c.Dialects = map[string]emu.Dialect{"edge-3-1": emu.XD20}
	return c, err
}

// happenings draws the faults.
func (e *Emulation) happenings(c emu.Config) (all []*scenario.Happening, end time.Duration, err error) {
	quiet, err := emu.New(c, e.Seed)
	if err != nil {
		return nil, 0, err
	}
	r := rand.New(rand.NewPCG(e.Seed, 1))
	list := scenario.Troubles()
	if len(e.Names) > 0 {
		list = list[:0]
		for _, name := range e.Names {
			t, ok := scenario.Lookup(name)
			if !ok {
				return nil, 0, fmt.Errorf("no fault %q in the table", name)
			}
			list = append(list, *t)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	end = e.Quiet
	for i := range list {
		h, err := list[i].Happen(quiet, end, r)
		if err != nil {
			return nil, 0, err
		}
		if e.Break != nil {
			e.Break(quiet, h)
		}
		all = append(all, h)
		end = h.Until + e.Pause
	}
	return all, end, nil
}

// Run lets it happen.
func (e *Emulation) Run(ctx context.Context) (*outcome, error) {
	var j *judge
	var network *emu.Network
	observed, built := *e, e.Built
	observed.Built = func(n *emu.Network, all []*scenario.Happening) {
		if network = n; built != nil {
			built(n, all)
		}
	}
	out, err := observed.Windows(ctx, func(epoch int64, w *inference.Window) {
		if j == nil {
			j = newJudge(epoch, network)
		}
		j.window(w)
	})
	if err != nil {
		return nil, err
	}
	j.share(out)
	return out, nil
}

// Windows runs the emulation and yields the windows of the collector, each valid during the call.
func (e *Emulation) Windows(ctx context.Context, each func(epoch int64, w *inference.Window)) (*outcome, error) {
	c, err := e.config()
	if err != nil {
		return nil, err
	}
	all, end, err := e.happenings(c)
	if err != nil {
		return nil, err
	}
	out := &outcome{Faults: make([]FaultCauses, len(all))}
	var network *emu.Network
	for i, h := range all {
		h.AddTo(&c)
		out.Faults[i].Happening = h
	}
	c.OnFault = func(at time.Duration, f emu.Fault, begins bool) {
		for i, h := range all {
			fault, dropped := &out.Faults[i], network.Stats().Dropped
			switch {
			case begins && h.From == at:
				fault.flow, fault.vanished, fault.denied = network.FlowKey(h.Flow), dropped[emu.Vanished], dropped[emu.Denied]
			case !begins && h.Until == at:
				fault.vanished, fault.denied = dropped[emu.Vanished]-fault.vanished, dropped[emu.Denied]-fault.denied
				fault.Idle = f.Kind == emu.DenyFlows && fault.denied == 0
			}
		}
	}
	if e.Tune != nil {
		e.Tune(&c)
	}
	if network, err = emu.New(c, e.Seed); err != nil {
		return nil, err
	}
	if e.Built != nil {
		e.Built(network, all)
	}
	p, err := newPipeline(analysis(), network, c.Plan, c.Epoch.UnixNano())
	if err != nil {
		return nil, err
	}
	for at := time.Duration(0); at < end; at += e.Window {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		network.Run(at+e.Window, func(d emu.Datagram) {
			if e.Probe != nil && d.Port == c.ProbePort {
				e.Probe(d)
			} else {
				p.datagram(d)
			}
		})
		w := p.cut(at, at+e.Window)
		if e.Look != nil {
			e.Look(&w)
		}
		each(p.epoch, &w)
	}
	out.Reports = p.reports
	return out, nil
}

// judge is the detector of a collector, with its findings, and the others.
type judge struct {
	epoch    int64
	rivals   *rivals
	detector *events.Detector
	last     map[uint64]inference.Finding // as it was published last
	order    []uint64
}

func newJudge(epoch int64, n *emu.Network) *judge {
	a := analysis()
	return &judge{epoch: epoch, rivals: newRivals(n), detector: events.New(a.Events), last: map[uint64]inference.Finding{}}
}

func (j *judge) window(w *inference.Window) {
	j.rivals.window(w)
	for _, f := range j.detector.Step(w) {
		if _, known := j.last[f.ID]; !known {
			j.order = append(j.order, f.ID)
		}
		j.last[f.ID] = f
	}
}

// share assigns each cause to the fault that began last before it.
func (j *judge) share(out *outcome) {
	j.rivals.share(out, j.epoch)
	for _, f := range j.detector.Open() {
		j.last[f.ID] = f
		if f.Cause == 0 {
			out.Open = append(out.Open, f)
		}
	}
	for _, id := range j.order {
		f := j.last[id]
		if f.Cause != 0 {
			out.Evidence = append(out.Evidence, f)
			continue
		}
		if f.Learning {
			out.Learning = append(out.Learning, f)
			continue
		}
		start := time.Duration(f.Start - j.epoch)
		at := -1
		for i := range out.Faults {
			if start >= out.Faults[i].From { // what happens at the end of a window is in it
				at = i
			}
		}
		if at < 0 {
			out.False = append(out.False, f)
		} else {
			out.Faults[at].causes = append(out.Faults[at].causes, f)
		}
	}
}

// names reports whether a finding names the element of the fault. For a link either of its interfaces counts, too,
// and for a port the link behind it.
func (t *FaultCauses) names(f *inference.Finding) bool {
	e := f.Element
	link := e.Kind == inference.LinkElement && t.Peer != 0 && e.Node == min(t.Node, t.Peer) && e.Peer == max(t.Node, t.Peer)
	port := func(node, port uint32) bool {
		return port != 0 && e.Kind == inference.InterfaceElement && e.Node == node && e.EgressIf == port
	}
	switch t.At {
	case scenario.OnLink:
		return link || port(t.Node, t.Port) || port(t.Peer, t.PeerPort)
	case scenario.AtSwitch:
		return e.Kind == inference.NodeElement && e.Node == t.Node || link
	case scenario.AtPort:
		return port(t.Node, t.Port)
	case scenario.AtSender:
		return f.Element.Kind == inference.ExporterElement && (f.Node == t.Node || e.Node == t.Node)
	case scenario.InFlow:
		return e.Kind == inference.FlowElement && e.Flow == t.flow || e.Kind == inference.NodeElement && e.Node == t.Node
	}
	return false
}
