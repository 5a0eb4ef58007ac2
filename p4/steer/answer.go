package steer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// probesAnswer is that of /api/probes.
type probesAnswer struct {
	Windows []struct {
		StartMS int64  `json:"start_ms"`
		EndMS   int64  `json:"end_ms"`
		Bound   uint64 `json:"flow_bound"`
		Probes  []struct {
			Flow    string
			Reports uint64
			Hops    []struct {
				Node     uint32
				EgressIf uint32           `json:"egress_if"`
				Latency  *quantilesAnswer `json:"latency_ns"`
				Queue    *quantilesAnswer `json:"queue_bytes"`
			}
		}
		Links []struct {
			Node     uint32
			EgressIf uint32 `json:"egress_if"`
			Peer     uint32
			PeerIf   uint32 `json:"peer_if"`
			Period   uint64 `json:"period_ns"`
			Packets  uint64
			Least    int64 `json:"least_ns"`
		}
	}
}

type quantilesAnswer struct{ Count, P50, P90, P99 uint64 }

// Bounds of what a page may answer. A time in a switch above an hour, and a queue above a terabyte, are none.
const (
	mostProbeWindows = 64
	mostProbes       = 1 << 16 // of a window
	mostProbeHops    = 64
	mostProbeReports = 1 << 32 // of a probe in a window
	mostHopLatency   = uint64(time.Hour)
	mostHopQueue     = 1 << 40
	mostLinks        = 1 << 16          // directions, of a window
	mostLineTime     = 1 << 62          // ns: difference of clocks
	mostAhead        = 10 * time.Minute // of this clock
)

// windows reads an answer. It is taken whole or refused whole.
func (a *probesAnswer) windows(now time.Time) (out []inference.Window, err error) {
	if len(a.Windows) > mostProbeWindows {
		return nil, fmt.Errorf("%d windows; the most are %d", len(a.Windows), mostProbeWindows)
	}
	for i := range a.Windows {
		x := &a.Windows[i]
		w := inference.Window{Start: x.StartMS * 1e6, End: x.EndMS * 1e6, FlowBound: x.Bound}
		length := x.EndMS - x.StartMS
		switch {
		case x.StartMS < 0 || length <= 0 || length > time.Hour.Milliseconds():
			return nil, fmt.Errorf("windows[%d]: from %d to %d ms is no window", i, x.StartMS, x.EndMS)
		case x.EndMS > now.Add(mostAhead).UnixMilli():
			return nil, fmt.Errorf("windows[%d]: ends at %d ms, ahead of the clock here", i, x.EndMS)
		case len(x.Probes) > mostProbes:
			return nil, fmt.Errorf("windows[%d]: %d probes; the most are %d", i, len(x.Probes), mostProbes)
		case len(x.Links) > mostLinks:
			return nil, fmt.Errorf("windows[%d]: %d links; the most are %d", i, len(x.Links), mostLinks)
		}
		for k := range x.Links {
			l := &x.Links[k]
			if l.Packets == 0 || l.Least > mostLineTime || l.Least < -mostLineTime {
				return nil, fmt.Errorf("windows[%d].links[%d]: %d ns of %d packets", i, k, l.Least, l.Packets)
			}
			w.Links = append(w.Links, inference.LinkStats{
				LinkKey: inference.LinkKey{Node: l.Node, EgressIf: l.EgressIf, Peer: l.Peer, PeerIf: l.PeerIf, Period: l.Period}, Count: l.Packets, Least: l.Least,
			})
		}
		for k := range x.Probes {
			p := &x.Probes[k]
			f := inference.FlowStats{Packets: p.Reports}
			if f.Key, err = decode.ParseFlow(p.Flow); err != nil {
				return nil, fmt.Errorf("windows[%d].probes[%d]: %w", i, k, err)
			}
			if p.Reports > mostProbeReports || len(p.Hops) > mostProbeHops {
				return nil, fmt.Errorf("windows[%d].probes[%d]: %d reports of %d hops", i, k, p.Reports, len(p.Hops))
			}
			for h := range p.Hops {
				g := &p.Hops[h]
				hop := inference.FlowHop{HopKey: inference.HopKey{Node: g.Node, EgressIf: g.EgressIf}}
				var errs [2]error
				hop.Latency, errs[0] = g.Latency.summary(p.Reports, mostHopLatency)
				hop.Queue, errs[1] = g.Queue.summary(p.Reports, mostHopQueue)
				if err := errors.Join(errs[:]...); err != nil {
					return nil, fmt.Errorf("windows[%d].probes[%d].hops[%d]: %w", i, k, h, err)
				}
				f.Hops = append(f.Hops, hop)
			}
			w.Flows = append(w.Flows, f)
		}
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b inference.Window) int { return int(min(1, max(-1, a.End-b.End))) })
	return out, nil
}

// summary is a hop's summary of as many probes as came.
func (q *quantilesAnswer) summary(reports, most uint64) (s inference.Summary, err error) {
	switch {
	case q == nil:
		return s, nil
	case q.Count > reports:
		return s, fmt.Errorf("%d values of %d reports", q.Count, reports)
	case q.P50 > q.P90 || q.P90 > q.P99 || q.P99 > most:
		return s, fmt.Errorf("%d, %d and %d are no quantiles", q.P50, q.P90, q.P99)
	}
	return inference.Summary{Count: q.Count, P50: q.P50, P90: q.P90, P99: q.P99, Max: q.P99}, nil
}
