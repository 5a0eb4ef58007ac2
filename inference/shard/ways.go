package shard

import (
	"math"
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
	begun int64 // start of the window, ns since 1970

	latest  int64 // time of the latest report
	setBack bool  // the clock was, in this window
}

// setBackBy is how much earlier a report is than the one before if the clock was set back, ns.
const setBackBy = 1e9

// passTime notes the time of a report, or of the end of a window.
func (x *probeWays) passTime(at int64) {
	if at < x.latest-setBackBy {
		x.setBack, x.latest = true, at
	}
	x.latest = max(x.latest, at)
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
	rounds  roundPair
	unheard uint64 // rounds of this window that were missed of a sender of which nothing ever came
	arrived bool   // a probe came in this epoch, so that the way of its flow is that of the path
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
	s.ways.passTime(r.Time)
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
	if inference.IsProbe(&r.Flow) && r.Flow.Src != r.Flow.Dst {
		s.observePlanned(r, w, n)
		return
	}
	s.cut.partial.AddProbes(r.NodeID, &r.Flow, n)
	switch {
	case w == nil:
		return
	case inference.IsProbe(&r.Flow):
		w.addPlanned(n)
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

// observePlanned counts a report about a path of a plan between two agents. What was lost is the difference of the rounds of both. Of a receiver that does
// not know the sender, and without a place, missed rounds are not known to be lost.
func (s *State) observePlanned(r *decode.Report, w *probeWay, n *decode.ProbeCounts) {
	counts := *n
	switch {
	case n.Rounds.End != decode.NoEnd:
		if w == nil {
			return
		}
		grown := w.rounds.report(n.Epoch, &n.Rounds, r.Time)
		if grown == 0 || r.Flow.Src == noSender {
			return
		}
		counts = decode.ProbeCounts{Path: n.Path, Epoch: n.Epoch, Missed: uint32(max(grown, 0)), Late: uint32(max(-grown, 0)), Forward: int32(grown)}
	case w == nil || w.rounds.replaces(n, r.Time):
		counts.Missed, counts.Late, counts.Forward = 0, 0, 0
		if w != nil && r.Flow.Src == noSender {
			w.unheard, w.agent = w.unheard+uint64(n.Missed), r.NodeID
		}
	}
	s.cut.partial.AddProbes(r.NodeID, &r.Flow, &counts)
	if w != nil {
		w.addPlanned(&counts)
	}
}

// noSender is the address in reports of a receiver that does not know its sender.
var noSender = decode.AddrFrom4([]byte{0, 0, 0, 0})

// cutUnheard counts the rounds that a receiver missed of a sender of which it knows nothing, if it waited for them in all
// of the window. Otherwise the sender can have ended before.
func (s *State) cutUnheard(p *window.Partial, w *probeWay, end int64) {
	if w.unheard > 0 && !s.ways.setBack && w.rounds.throughout(s.ways.begun-unheardMargin, end-unheardMargin) {
		p.AddProbes(w.agent, &w.key.flow, &decode.ProbeCounts{Path: w.key.path, Epoch: w.epoch, Missed: uint32(min(w.unheard, math.MaxUint32))})
	}
	w.unheard = 0
}

// unheardMargin is the time between a round and its report, ns.
const unheardMargin = 2e9

// addPlanned adds the counts of a report about a path of a plan. Two agents report of one, and not of the same epoch at all times.
func (w *probeWay) addPlanned(n *decode.ProbeCounts) {
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
func (s *State) cutWays(p *window.Partial, end int64) {
	x := &s.ways
	x.passTime(end)
	defer func() { x.begun, x.setBack = end, false }()
	for i := range x.list {
		w := &x.list[i]
		if inference.IsProbe(&w.key.flow) {
			s.cutUnheard(p, w, end)
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
