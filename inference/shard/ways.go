package shard

import (
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sketches"
)

const (
	// maxProbeWays is the number of flows of probes whose way a shard remembers: hostile packets can make them up.
	maxProbeWays = 1024
	// idleWay is the number of windows without a report after which another flow may take the place of one.
	idleWay = 64
)

// probeWaysMemory is the most that the ways of probes of a shard take, in bytes, with their losses in two cuts and in the
// window of all shards. A map that grows is there twice.
const probeWaysMemory = maxProbeWays * (int64(unsafe.Sizeof(probeWay{})) + 4*(int64(unsafe.Sizeof(wayKey{}))+8) +
	3*2*(int64(unsafe.Sizeof(inference.FlowLoss{}))+int64(unsafe.Sizeof(decode.FlowKey{}))+16+(decode.MostWay+2)*int64(unsafe.Sizeof(inference.HopKey{}))))

// probeWays remembers the ways of agents' probes, and compares what was sent with what came to the other agent. So each
// flow of probes is a flow whose losses are known ([inference.FlowLoss]).
type probeWays struct {
	list  []probeWay
	index map[wayKey]int
	path  []inference.HopKey
}

// wayKey is a flow of probes, and its number among those between its agents.
type wayKey struct {
	flow decode.FlowKey
	path uint32
}

type probeWay struct {
	key     wayKey
	agent   uint32
	epoch   uint32                 // of the way
	routers int                    // 0 where no way is known
	nodes   [decode.MostWay]uint32 // 0 for a router that did not answer
	settled uint64                 // in this window: probes that came, and those that did not
	lost    int64                  // of them, on their way out; less than 0 where losses of an earlier window are taken back
	last    uint32                 // window

	plan    inference.ProbeStats // of a path of a plan: counts of this window
	arrived bool                 // a probe came in this epoch, so that the way of its flow is that of the path
}

// at returns the state of a flow, or nil if there is no place.
func (x *probeWays) at(k wayKey, window uint32) *probeWay {
	i, known := x.index[k]
	if !known {
		if i = len(x.list); i == maxProbeWays {
			for i = 0; i < len(x.list) && window-x.list[i].last <= idleWay; i++ {
			}
			if i == maxProbeWays {
				return nil
			}
			delete(x.index, x.list[i].key)
		} else {
			x.list = append(x.list, probeWay{})
		}
		if x.index == nil {
			x.index = map[wayKey]int{}
		}
		x.list[i], x.index[k] = probeWay{key: k}, i
	}
	x.list[i].last = window
	return &x.list[i]
}

// observeProbes counts a report of an agent about probes.
func (s *State) observeProbes(r *decode.Report, n *decode.ProbeCounts) {
	w := s.ways.at(wayKey{r.Flow, n.Path}, s.window)
	if w != nil {
		w.agent = r.NodeID
	}
	if len(n.Way) > 0 {
		if w != nil {
			w.epoch, w.routers = n.Epoch, min(len(n.Way), len(w.nodes))
			for i := range w.routers {
				w.nodes[i] = 0
				if a := n.Way[i]; a != (decode.Addr{}) {
					w.nodes[i] = a.Node()
				}
			}
		}
		return
	}
	s.cut.partial.AddProbes(r.NodeID, &r.Flow, n)
	switch {
	case w == nil:
		return
	case inference.IsProbe(&r.Flow):
		w.observePlanned(n)
		return
	}
	if n.Epoch != w.epoch {
		w.routers = 0 // of before
	}
	settled := int64(n.Received) - int64(n.Late) + int64(n.Missed)
	w.settled += uint64(max(settled, 0))
	w.lost += int64(n.Forward)
	if n.Received == 0 { // without an answer it does not show on which way; that out has losses first
		w.lost += max(int64(n.Missed)-int64(n.Forward)-int64(n.Back), 0)
	}
}

// observePlanned counts a report about a path of a plan. Two agents report of one, and not of the same epoch at all times.
func (w *probeWay) observePlanned(n *decode.ProbeCounts) {
	if n.Epoch != w.epoch {
		w.epoch, w.plan, w.arrived = n.Epoch, inference.ProbeStats{}, false
	}
	c := &w.plan
	c.Sent, c.Received = c.Sent+uint64(n.Sent), c.Received+uint64(n.Received)
	c.Missed, c.Late, c.Forward = c.Missed+uint64(n.Missed), c.Late+uint64(n.Late), c.Forward+int64(n.Forward)
	w.arrived = w.arrived || n.Received > 0
}

// cutPlanned adds what was lost on a path of a plan. The way is that of the last probe that came.
func (s *State) cutPlanned(p *window.Partial, w *probeWay) {
	w.plan.Flow = w.key.flow
	lost, _ := w.plan.Settled()
	arrived := w.plan.InTime()
	w.plan = inference.ProbeStats{}
	slot := s.flows.Get(tableHash(s.key.Flow(&w.key.flow)), &w.key.flow)
	if !w.arrived || arrived == 0 && lost <= 0 || slot == sketches.NoSlot {
		return
	}
	e := s.flows.At(slot)
	if e.Value.flags&partial != 0 || e.Value.hops == 0 {
		return
	}
	s.path = s.hopKeys(s.path[:0], &e.Value)
	p.AddLoss(&inference.FlowLoss{Flow: w.key.flow, Packets: arrived + uint64(max(lost, 0)), Lost: uint64(max(lost, 0)), Path: s.path})
}

// cutWays adds what was lost of probes until the end of the window. Of an unknown way the path is the agent alone.
func (s *State) cutWays(p *window.Partial) {
	x := &s.ways
	for i := range x.list {
		w := &x.list[i]
		if inference.IsProbe(&w.key.flow) {
			s.cutPlanned(p, w)
			continue
		}
		if w.settled == 0 && w.lost <= 0 {
			continue
		}
		lost := uint64(max(w.lost, 0))
		x.path = append(x.path[:0], inference.HopKey{Node: w.agent, Other: true})
		if w.routers > 0 {
			for _, n := range w.nodes[:w.routers] {
				x.path = append(x.path, inference.HopKey{Node: n})
			}
			x.path = append(x.path, inference.HopKey{Node: w.key.flow.Dst.Node()})
		}
		p.AddLoss(&inference.FlowLoss{Flow: w.key.flow, Packets: max(w.settled, lost), Lost: lost, Path: x.path})
		w.settled, w.lost = 0, min(w.lost, 0)
	}
}
