package ways

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// That a packet vanished ahead of its last switch rests on reports of that switch about all packets that arrive. Where it
// samples, is policed or reports some flows only, packets of other ways and flows to it are in no report either. So a link
// or a flow is blamed by what packets to other last switches show, or by how much more of its own packets to such a switch
// are missing in the window than of others to it.

// basis is the evidence of a culprit.
type basis uint8

const (
	complete basis = iota // packets to last switches that report what arrives
	greater               // more are missing than of others to the same last switches, which report a part of what arrives
	several               // of a flow, one of several to the same last switch that vanish at once
	nothing               // as many are missing as of others to the same last switches
)

// severalFlows to one last switch that vanish at once are rather flows that it does not report.
const severalFlows = 3

// together returns how many flows to the last switch of a flow are found with it: in its fit, or a short time before or
// after.
func (x *Silent) together(c *loss.Culprit, all []loss.Culprit) (n int) {
	path := x.sampleFlows[c.Flow].path
	found := func(k culprit) int64 {
		if s := x.culprits.Index[k]; s != nil {
			return s.State.finding.Start
		}
		return x.culprits.Now
	}
	at := found(x.keyOf(c))
	count := func(k culprit) {
		f := x.flows.Index[k.flow]
		if apart := found(k) - at; f != nil && f.State.endsAt(path) && max(apart, -apart) <= silentBursts*x.length {
			n++
		}
	}
	for i := range all {
		if k := x.keyOf(&all[i]); all[i].Link < 0 && x.culprits.Index[k] == nil {
			count(k)
		}
	}
	for _, s := range x.culprits.List {
		if k := s.Key; k.end.scope == noEnd && k.from == 0 && k.to == 0 {
			count(k)
		}
	}
	return n
}

// endsAt reports whether the way has the same last node as another one.
func (f *silentFlow) endsAt(path []inference.HopKey) bool {
	return len(f.path) > 0 && len(path) > 0 && f.last() == path[len(path)-1].Node
}

// atLast are packets of a window to a last switch: those that a culprit explains, and others.
type atLast struct{ blamed, others compared }

// witness is a flow of the window beside the culprits of a fit.
type witness struct {
	key       decode.FlowKey
	flow      *silentFlow
	explained bool // by a link or a flow
}

// witnesses returns the flows of the window. Links that lead to a last switch and are found at once are rather that switch,
// and explain nothing.
func (x *Silent) witnesses(all []loss.Culprit) (out []witness) {
	found := map[culprit]bool{}
	for i := range all {
		found[x.keyOf(&all[i])] = true
	}
	for _, s := range x.flows.List {
		f := &s.State
		if s.Last != x.flows.Windows || f.window.packets == 0 || len(f.path) == 0 {
			continue
		}
		one := culprit{flow: s.Key}
		explained := found[one] || x.culprits.Index[one] != nil
		for i := 1; i < len(f.path) && !explained; i++ {
			link := culprit{from: f.path[i-1].Node, to: f.path[i].Node}
			explained = x.culprits.Index[link] != nil || found[link] && link.to != f.last()
		}
		out = append(out, witness{s.Key, f, explained})
	}
	return out
}

// basisOf returns the evidence of a link or a flow, by the flows of the window.
func (x *Silent) basisOf(c *loss.Culprit, all []loss.Culprit, window []witness) basis {
	k := x.keyOf(c)
	nodes := map[uint32]*atLast{}
	of := make([]*compared, len(window)) // the sum that a flow is part of
	for i := range window {
		f := window[i].flow
		blamed := k.explains(window[i].key, f.path)
		if window[i].explained && !blamed {
			continue
		}
		n := nodes[f.last()]
		if n == nil {
			n = &atLast{}
			nodes[f.last()] = n
		}
		if of[i] = &n.others; blamed {
			of[i] = &n.blamed
		}
		of[i].add(f.window)
	}
	candidates := x.ends.len() + x.links.len() + len(x.samples)
	needed := func(v compared) bool { return v.lost >= loss.Needed(v.packets, x.flows.Cfg.SilentLoss, candidates) }
	partial := map[uint32]bool{}
	for n, v := range nodes {
		partial[n] = needed(v.others) || x.openBehind(n)
	}
	for i, f := range x.sampleFlows { // ends in front, too, can stand for last switches that all report the same part
		if len(f.path) > 0 && k.explains(x.keys[i], f.path) && x.openAhead(x.keys[i], f.path) {
			partial[f.last()] = true
		}
	}
	var whole, part compared
	for i := range x.samples {
		if f := x.sampleFlows[i]; k.explains(x.keys[i], f.path) {
			if v := (compared{x.samples[i].Packets, x.samples[i].Lost}); len(f.path) > 0 && partial[f.last()] {
				part.add(v)
			} else {
				whole.add(v)
			}
		}
	}
	if part.lost == 0 || needed(whole) {
		if c.Link < 0 && x.together(c, all) >= severalFlows {
			return several
		}
		return complete
	}
	// Of a flow whose packets are all reported, or none of them, each packet shows the same.
	square, free, usual := 0.0, 0, 0.0
	part = compared{}
	for n, v := range nodes {
		if partial[n] {
			free--
			if v.blamed.packets > 0 {
				free--
			}
		}
	}
	for i, sum := range of {
		f := window[i].flow
		if sum == nil || !partial[f.last()] {
			continue
		}
		free++
		n, p := float64(f.window.packets), sum.share()
		if variance := n * p * (1 - p); variance > 0 {
			d := float64(f.window.lost) - n*p
			square += d * d / variance
		}
		if v := nodes[f.last()]; sum == &v.blamed {
			part.add(f.window)
			usual += n * v.others.share()
		}
	}
	scatter := 1.0
	if free > 0 {
		scatter = max(1, square/float64(free))
	}
	packets := math.Floor(float64(part.packets) / scatter)
	lost := min(math.Floor(float64(part.lost)/scatter), packets)
	if loss.Tail(uint64(lost), uint64(packets), usual/float64(max(part.packets, 1)))*float64(candidates) > silentAlarm {
		return nothing
	}
	return greater
}

// openBehind reports whether an end behind a last switch has an open finding.
func (x *Silent) openBehind(node uint32) bool {
	return slices.ContainsFunc(x.culprits.List, func(s *subject.Entry[culprit, vanished]) bool {
		e := s.Key.end
		return e.node == node && (e.scope == portEnd || e.scope == hostEnd || e.scope == lastEnd)
	})
}

// openAhead reports whether an end in front of the first switch of a way has an open finding.
func (x *Silent) openAhead(flow decode.FlowKey, path []inference.HopKey) bool {
	return slices.ContainsFunc(endsOf(flow, path), func(e end) bool {
		return (e.scope == firstEnd || e.scope == sentEnd) && x.culprits.Index[culprit{end: e}] != nil
	})
}

// keyOf returns the culprit that a fit found.
func (x *Silent) keyOf(c *loss.Culprit) culprit {
	if c.Link < 0 {
		return culprit{flow: x.keys[c.Flow]}
	}
	return x.culpritOf(c.Link)
}

// last returns the last node of the way.
func (f *silentFlow) last() uint32 { return f.path[len(f.path)-1].Node }

// share is the share of the packets that are lost.
func (v *compared) share() float64 { return float64(v.lost) / float64(max(v.packets, 1)) }
