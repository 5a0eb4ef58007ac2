package steer

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/suspicion"
)

// feed gathers what probes reported of links, from windows of a collector, for cycles of the control. Which probe a flow is follows
// from the way that it took: addresses and numbers of probes are the agents' own.
type feed struct {
	links  *Links
	ways   map[string]int // the directions that a probe of the plan passes, to its place in passed
	passed [][]int32
	least  int64 // length of the windows that are judged together, ns

	mu        sync.Mutex
	last      int64 // end of the newest window that was observed
	length    int64 // of it
	span      int64 // length of the windows that are not judged yet, ns
	sums      map[int32]*hopSum
	lines     map[int32]*lineTime // the clocks at both ends of a direction
	unplanned uint64              // flows like probes that took no way of the plan
	foreign   bool                // the last window has such flows
	unlisted  bool                // the last window left flows out, and has no probe
	unchanged int                 // answers in a row without a new window
	key       []byte
}

// lineTime is the least time on a direction in the windows that are not judged yet. Its two clocks differ by an
// arbitrary constant. A direction may have several pairs of clocks, of different resolution; the pair that was seen
// first is followed.
type lineTime struct {
	key   inference.LinkKey
	last  int64 // of the window before, ns; further ones are taken nearest to it, modulo the period
	least int64
	count uint64 // packets that were looked at; 0 for none
}

func (l *lineTime) add(x *inference.LinkStats) {
	v := x.Least
	if p := int64(min(x.Period, math.MaxInt64)); p > 0 && p < math.MaxInt64 {
		d := (v - l.last) % p
		if d >= (p+1)/2 {
			d -= p
		} else if d < -p/2 {
			d += p
		}
		v = l.last + d
	}
	if l.last = v; l.count == 0 || v < l.least {
		l.least = v
	}
	l.count += x.Count
}

// hopSum adds up what several probes, in several windows, reported of a link: counts, and quantiles times counts.
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

// window returns the means of the quantiles: probes over the same link meet the same queue.
func (q *quantileSum) window() (w detect.Window) {
	if q.count == 0 {
		return w
	}
	n := float64(q.count)
	return detect.Window{Count: q.count, P50: q.p50 / n, P90: q.p90 / n, P99: q.p99 / n}
}

// probeRounds is the number of rounds of a probe that are judged together. With fewer, other packets just ahead of a
// probe are taken for a queue. If three of five values waited for one packet, the median is ten times as long.
const probeRounds = 20

// newFeed observes probes that pass these directions, once an interval.
func newFeed(links *Links, passed [][]int32, interval time.Duration) *feed {
	f := &feed{links: links, ways: map[string]int{}, passed: passed, least: probeRounds * int64(interval), sums: map[int32]*hopSum{}, lines: map[int32]*lineTime{}}
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

// Observe adds what the probes of a window reported. Windows that come again, or late, have been judged already and are passed over.
func (f *feed) Observe(w *inference.Window) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.End <= w.Start || w.End <= f.last {
		return
	}
	f.last, f.length = w.End, w.End-w.Start
	f.span += w.End - w.Start
	f.unlisted, f.foreign = w.FlowBound > 0, false
	for i := range w.Flows {
		x := &w.Flows[i]
		if !inference.IsProbe(&x.Key) || x.Partial {
			continue
		}
		k := f.probe(x.Hops)
		if k < 0 {
			f.unplanned++
			f.foreign = true
			continue
		}
		f.unlisted = false
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
	for i := range w.Links {
		f.addLine(&w.Links[i])
	}
}

// addLine adds how long packets were on a direction, whichever packets reported it.
func (f *feed) addLine(x *inference.LinkStats) {
	link := f.links.direction(&x.LinkKey)
	if link < 0 {
		return
	}
	l := f.lines[link]
	if l == nil {
		l = &lineTime{key: x.LinkKey, last: x.Least}
		f.lines[link] = l
	}
	if l.key == x.LinkKey {
		l.add(x)
	}
}

// replace adopts the probes of another network. Data that is not judged yet is dropped: it has the numbers of links of
// the network before.
func (f *feed) replace(next *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links, f.ways, f.passed, f.least = next.links, next.ways, next.passed, next.least
	f.span, f.unplanned = 0, 0
	clear(f.sums)
	clear(f.lines)
}

// probe returns the probe of the plan that took a way, or -1. Its last hop may lead to the host that receives it.
func (f *feed) probe(hops []inference.FlowHop) int {
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
func (f *feed) cycle(c *suspicion.Cycle, length time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.span == 0 || f.span < f.least {
		c.NoNewWindow = true
		return
	}
	c.Window = max(length, time.Duration(f.span))
	for link := range int32(f.links.graph.NumInterfaces()) {
		s, l := f.sums[link], f.lines[link]
		h := suspicion.Hop{Link: link}
		if s != nil {
			h.Latency, h.Queue = s.latency.window(), s.queue.window()
		}
		if l != nil && l.count > 0 {
			h.Line = detect.Window{Count: l.count, P50: float64(l.least)}
			l.count = 0
		}
		if s != nil || h.Line.Count > 0 {
			c.Hops = append(c.Hops, h)
		}
	}
	f.span = 0
	clear(f.sums)
}

// Unplanned counts the flows like probes that took no way of the plan.
func (f *feed) Unplanned() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unplanned
}

// newest is the end of the newest window that was taken, in ms.
func (f *feed) newest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last / 1e6
}

// Page is the page of a collector, or of the console of a fleet.
type Page struct {
	URL string
	Get func(ctx context.Context, path string, into any) error // reads an answer of JSON
}

// Poll asks a page for reports of probes, twice a cycle, until ctx ends. While there is no answer, the last reports
// stand.
func (f *feed) Poll(ctx context.Context, page *Page, cycle time.Duration, log *slog.Logger) {
	logged, foreign, unlisted, silent := "", false, false, false
	poll(ctx, cycle, func(every time.Duration) {
		err := f.Ask(ctx, page)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if logged != err.Error() {
				logged = err.Error()
				log.Error("no values of probes; the last ones stay", "error", logged)
			}
		case logged != "":
			logged = ""
			log.Info("values of probes can be read again")
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.foreign != foreign {
			if foreign = f.foreign; foreign {
				log.Warn("the collector reports probes that took no way of the plan; they are left out", "so_far", f.unplanned)
			}
		}
		if f.unlisted != unlisted {
			if unlisted = f.unlisted; unlisted {
				log.Warn("the windows of the collector list no probe of the plan: there are more flows than it lists; raise flows.top_flows there")
			}
		}
		if now := f.stale(every); err == nil && now != silent {
			if silent = now; silent {
				log.Warn("the page has no new windows; the last values of probes stay; was the clock of the collector set back?", "newest", time.Unix(0, f.last).UTC().Format(time.RFC3339))
			} else {
				log.Info("the page has new windows again")
			}
		}
	})
}

// Ask asks a page once, for the windows that are newer than those observed.
func (f *feed) Ask(ctx context.Context, page *Page) error {
	var got probesAnswer
	since := f.newest()
	path := "/api/probes"
	if since > 0 {
		path += "?since=" + strconv.FormatInt(since, 10)
	}
	if err := page.Get(ctx, path, &got); err != nil {
		return err
	}
	windows, err := got.windows(time.Now())
	if err != nil {
		return fmt.Errorf("%s answers what cannot be: %w", page.URL, err)
	}
	for i := range windows {
		f.Observe(&windows[i])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unchanged++; f.last/1e6 > since {
		f.unchanged = 0
	}
	return nil
}

// stale reports whether a page that is asked so often has had no new window for longer than windows take, and a minute.
func (f *feed) stale(every time.Duration) bool {
	return f.last > 0 && time.Duration(f.unchanged)*every > max(time.Minute, 4*time.Duration(f.length))
}
