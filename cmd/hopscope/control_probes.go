package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/suspicion"
)

// probeFeed gathers what probes told of links, from windows as they come to cycles of the control. Which probe a flow is follows
// from the way that it took: addresses and numbers of probes are the agents' own.
type probeFeed struct {
	links  *directions
	ways   map[string]int // the directions that a probe of the plan passes, to its place in passed
	passed [][]int32
	least  int64 // length of the windows that are judged together, ns

	mu      sync.Mutex
	last    int64 // end of the newest window that was taken
	length  int64 // of it
	span    int64 // length of the windows that are not judged yet, ns
	sums    map[int32]*hopSum
	strange uint64 // flows like probes that took no way of the plan
	stray   bool   // the last window has such flows
	hidden  bool   // the last window left flows out, and has no probe
	quiet   int    // answers in a row without a new window
	key     []byte
}

// hopSum adds up what several probes, in several windows, told of a link: counts, and quantiles times counts.
type hopSum struct{ latency, queue quantileSum }

type quantileSum struct {
	count         uint64
	p50, p90, p99 float64
}

func (q *quantileSum) add(s *inference.Summary) {
	n := float64(s.Count)
	q.count += s.Count
	q.p50 += n * float64(s.P50)
	q.p90 += n * float64(s.P90)
	q.p99 += n * float64(s.P99)
}

// window gives the means of the quantiles: probes over the same link meet the same queue.
func (q *quantileSum) window() (w detect.Window) {
	if q.count == 0 {
		return w
	}
	n := float64(q.count)
	return detect.Window{Count: q.count, P50: q.p50 / n, P90: q.p90 / n, P99: q.p99 / n}
}

// probeRounds is how many rounds of a probe are judged together. With fewer, packets of others that happen to be before it are taken for a
// queue: of five values, three that waited for one packet are a median that is ten times as long.
const probeRounds = 20

// newProbeFeed follows probes that pass these directions, once an interval.
func newProbeFeed(links *directions, passed [][]int32, interval time.Duration) *probeFeed {
	f := &probeFeed{links: links, ways: map[string]int{}, passed: passed, least: probeRounds * int64(interval), sums: map[int32]*hopSum{}}
	for k, way := range passed {
		if len(way) > 0 {
			f.ways[string(appendWay(nil, way))] = k
		}
	}
	return f
}

func appendWay(key []byte, way []int32) []byte {
	for _, i := range way {
		key = binary.BigEndian.AppendUint32(key, uint32(i))
	}
	return key
}

// take keeps what the probes of a window told. Windows that come again, or late, have been judged already and are passed over.
func (f *probeFeed) take(w *inference.Window) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.End <= w.Start || w.End <= f.last {
		return
	}
	f.last, f.length = w.End, w.End-w.Start
	f.span += w.End - w.Start
	f.hidden, f.stray = w.FlowBound > 0, false
	for i := range w.Flows {
		x := &w.Flows[i]
		if !inference.IsProbe(&x.Key) || x.Partial {
			continue
		}
		k := f.probe(x.Hops)
		if k < 0 {
			f.strange++
			f.stray = true
			continue
		}
		f.hidden = false
		for h, link := range f.passed[k] {
			s := f.sums[link]
			if s == nil {
				s = &hopSum{}
				f.sums[link] = s
			}
			s.latency.add(&x.Hops[h].Latency)
			s.queue.add(&x.Hops[h].Queue)
		}
	}
}

// follow takes over the probes of another network. What is not judged yet is let go: it tells of links by the numbers that they had.
func (f *probeFeed) follow(next *probeFeed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links, f.ways, f.passed, f.least = next.links, next.ways, next.passed, next.least
	f.span, f.strange = 0, 0
	clear(f.sums)
}

// probe says which probe of the plan took a way, or -1. Its last hop may lead to the host that receives it.
func (f *probeFeed) probe(hops []inference.FlowHop) int {
	f.key = f.key[:0]
	for i := range hops {
		h := &hops[i]
		at := -1
		if n, ok := f.links.nodes[h.Node]; ok && !h.Other && !h.Unknown && !h.Inferred {
			at = f.links.graph.ByPort(n, int(h.EgressIf))
		}
		f.key = binary.BigEndian.AppendUint32(f.key, uint32(at))
	}
	if k, ok := f.ways[string(f.key)]; ok {
		return k
	}
	if k, ok := f.ways[string(f.key[:max(0, len(f.key)-4)])]; ok {
		return k
	}
	return -1
}

// cycle moves what came into c, when it is enough to be judged.
func (f *probeFeed) cycle(c *suspicion.Cycle, length time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.span == 0 || f.span < f.least {
		c.Stands = true
		return
	}
	c.Window = max(length, time.Duration(f.span))
	for link, s := range f.sums {
		c.Hops = append(c.Hops, suspicion.Hop{Link: link, Latency: s.latency.window(), Queue: s.queue.window()})
	}
	slices.SortFunc(c.Hops, func(a, b suspicion.Hop) int { return int(a.Link) - int(b.Link) })
	f.span = 0
	clear(f.sums)
}

// newest is the end of the newest window that was taken, in ms.
func (f *probeFeed) newest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last / 1e6
}

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

// summary is what a hop told of as many probes as were reported.
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

// askProbes asks a page for what probes told, as often as the loop wants to know.
func askProbes(ctx context.Context, url, tokenFile string, cycle time.Duration, to *probeFeed, log *slog.Logger) {
	a := asker{url: url, tokenFile: tokenFile, format: "table"}
	every := max(cycle/2, 100*time.Millisecond)
	t := time.NewTicker(every)
	defer t.Stop()
	said, stray, hidden, quiet := "", false, false, false
	for {
		err := to.ask(ctx, &a)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // what they told last stands
			if said != err.Error() {
				said = err.Error()
				log.Error("no values of probes; what they told last stands", "error", said)
			}
		case said != "":
			said = ""
			log.Info("values of probes again")
		}
		to.mu.Lock()
		if to.stray != stray {
			if stray = to.stray; stray {
				log.Warn("the collector tells of probes that took no way of the plan; they are left out", "so_far", to.strange)
			}
		}
		if to.hidden != hidden {
			if hidden = to.hidden; hidden {
				log.Warn("the windows of the collector list no probe of the plan: there are more flows than it lists; raise flows.top_flows there")
			}
		}
		if now := to.silent(every); err == nil && now != quiet {
			if quiet = now; quiet {
				log.Warn("the page has no new windows; what probes told last stands; was the clock of the collector set back?", "newest", time.Unix(0, to.last).UTC().Format(time.RFC3339))
			} else {
				log.Info("the page has new windows again")
			}
		}
		to.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// ask asks once.
func (f *probeFeed) ask(ctx context.Context, a *asker) error {
	var got probesAnswer
	since := f.newest()
	path := "/api/probes"
	if since > 0 {
		path += "?since=" + strconv.FormatInt(since, 10)
	}
	if err := a.get(ctx, path, &got, io.Discard); err != nil {
		return err
	}
	windows, err := got.windows(time.Now())
	if err != nil {
		return fmt.Errorf("%s answers what cannot be: %w", a.url, err)
	}
	for i := range windows {
		f.take(&windows[i])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quiet++; f.last/1e6 > since {
		f.quiet = 0
	}
	return nil
}

// silent reports whether a page that is asked so often has had no new window for longer than windows take, and a minute.
func (f *probeFeed) silent(every time.Duration) bool {
	return f.last > 0 && time.Duration(f.quiet)*every > max(time.Minute, 4*time.Duration(f.length))
}
