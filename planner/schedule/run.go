package schedule

import (
	"math"
	"slices"
)

// events holds the events of one hyperperiod.
type events struct {
	sent, starts  int
	objective     float64
	gap           []int   // by link: the longest between two looks; more than the hyperperiod if there is none
	load          []int64 // by link: bytes
	send, receive []int64 // by agent: bytes
	peak          int     // most starts of an agent in a slot
	tooClose      int     // starts that are nearer to the one before than wanted
	wait          int     // the shortest between two starts of an agent
}

// run sends the probes of one hyperperiod, start by start.
func run(r *Resolved, t Times) *events {
	e := &events{
		gap: make([]int, len(r.Links)), load: make([]int64, len(r.Links)),
		send: make([]int64, len(r.Agents)), receive: make([]int64, len(r.Agents)), wait: r.Hyper,
	}
	// A calendar: probes that start in a slot are a chain, and move on by their interval when they have started.
	head, next := slices.Repeat([]int32{-1}, r.Hyper), make([]int32, len(r.Probes))
	for k := len(r.Probes) - 1; k >= 0; k-- {
		if t.Interval[k] > 0 {
			next[k], head[t.Phase[k]] = head[t.Phase[k]], int32(k)
			e.sent++
			e.objective += float64(r.Probes[k].Total) / r.Seconds(t.Interval[k])
		}
	}
	link, agent := newLooks(len(r.Links)), newLooks(len(r.Agents))
	together := make([]int, len(r.Agents)) // starts in the slot of the last one
	start := func(a int32, slot int) {
		switch wait := agent.look(a, slot); {
		case wait < 0: // the first; the wait before it is that at the end of the hyperperiod
			together[a] = 1
		case wait == 0:
			together[a]++
			e.tooClose++
			e.wait = 0
		default:
			together[a] = 1
			if wait < r.Spacing {
				e.tooClose++
			}
			e.wait = min(e.wait, wait)
		}
		e.peak = max(e.peak, together[a])
	}
	for slot := range head {
		for k := head[slot]; k >= 0; {
			p, after := &r.Probes[k], next[k]
			e.starts++
			if p.Agent >= 0 {
				e.send[p.Agent] += p.Sent
				start(p.Agent, slot)
			}
			if p.Collector >= 0 {
				e.receive[p.Collector] += p.Received
			}
			for i, l := range p.Links {
				e.gap[l] = max(e.gap[l], link.look(l, slot))
				e.load[l] += p.Bytes[i]
			}
			if repeat := slot + t.Interval[k]; repeat < r.Hyper {
				next[k], head[repeat] = head[repeat], k
			}
			k = after
		}
	}
	for l := range e.gap {
		if link.first[l] < 0 {
			e.gap[l] = math.MaxInt
			continue
		}
		e.gap[l] = max(e.gap[l], link.around(l, r.Hyper))
	}
	for a := range r.Agents {
		if agent.first[a] < 0 {
			continue
		}
		wait := agent.around(a, r.Hyper)
		if wait < r.Spacing {
			e.tooClose++
		}
		e.wait = min(e.wait, wait)
	}
	return e
}

// looks remembers when something happened first and last.
type looks struct{ first, last []int }

func newLooks(n int) *looks {
	return &looks{slices.Repeat([]int{-1}, n), make([]int, n)}
}

// look records an event now, and returns the time since the last one, or -1.
func (x *looks) look(k int32, now int) (since int) {
	if x.first[k] < 0 {
		x.first[k], x.last[k] = now, now
		return -1
	}
	since = now - x.last[k]
	x.last[k] = now
	return since
}

// around is the time from the last one to the first one of the next hyperperiod.
func (x *looks) around(k, hyper int) int { return x.first[k] + hyper - x.last[k] }

// stats returns all of the statistics but bounds, optimality and time.
func (e *events) stats(r *Resolved) (s Stats) {
	s.Objective, s.Probes, s.Sent, s.Starts = e.objective, len(r.Probes), e.sent, e.starts
	for l := range r.Links {
		switch link := &r.Links[l]; {
		case link.Period == 0:
		case e.gap[l] <= link.Period:
			s.Links++
			s.Seen++
		default:
			s.Links++
			s.LeftOut += link.Weight
		}
		s.BusiestLink = max(s.BusiestLink, r.bps(e.load[l]))
	}
	for a := range r.Agents {
		s.BusiestSend, s.BusiestReceive = max(s.BusiestSend, r.bps(e.send[a])), max(s.BusiestReceive, r.bps(e.receive[a]))
	}
	s.Peak, s.TooClose, s.ShortestWait = e.peak, e.tooClose, r.Millis(e.wait)
	return s
}

// bps turns the bytes of a hyperperiod into bits per second.
func (r *Resolved) bps(bytes int64) float64 { return 8 * float64(bytes) / r.Seconds(r.Hyper) }
