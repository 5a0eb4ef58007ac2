package world

import (
	"math"
	"math/rand/v2"
)

// queue is the work that waits in front of a port, in seconds of its rate.
type queue struct {
	at   float64 // time of work
	work float64
}

// arrivals are the traffic of a port that is not simulated packet by packet.
type arrivals struct {
	load  float64 // share of the rate
	mean  float64 // of a packet's service, s
	fixed bool    // all packets take mean; otherwise sizes are mixed
	batch float64 // packets that come at once, on average; 0 or 1 is one by one
}

// Services of mixed packets relative to their mean: 64, 576 and 1500 bytes in 4, 2 and 4 of 10.
var mixed = func() (x [3]float64) {
	mean := .4*64 + .2*576 + .4*1500
	for i, size := range [...]float64{64, 576, 1500} {
		x[i] = size / mean
	}
	return x
}()

var mixedSquare = .4*mixed[0]*mixed[0] + .2*mixed[1]*mixed[1] + .4*mixed[2]*mixed[2]

// draw is the service of one packet.
func (a *arrivals) draw(r *rand.Rand) float64 {
	if a.fixed {
		return a.mean
	}
	switch u := r.Float64(); {
	case u < .4:
		return a.mean * mixed[0]
	case u < .6:
		return a.mean * mixed[1]
	}
	return a.mean * mixed[2]
}

// wait is the mean work that an arrival meets (Pollaczek and Khinchine).
func (a *arrivals) wait() float64 {
	square := mixedSquare
	if a.fixed {
		square = 1
	}
	b := max(a.batch, 1)
	return a.load * a.mean * (square + 2*(b-1)) / 2 / (1 - a.load)
}

// steps is how many arrivals are simulated before a packet that comes after a long gap.
const steps = 48

// advance brings the work to a time. limit is the most that waits.
func (q *queue) advance(t float64, a *arrivals, limit float64, r *rand.Rand) {
	gap := t - q.at
	if gap <= 0 {
		return
	}
	q.at = t
	if a.load <= 0 {
		q.work = max(q.work-gap, 0)
		return
	}
	between := a.mean / a.load * max(a.batch, 1)
	if tail := steps * between; gap > tail {
		skipped := gap - tail
		fluid := q.work + (a.load-1)*skipped
		q.work = min(max(fluid, 0), limit)
		if a.load < .995 && fluid <= 0 {
			if r.Float64() < a.load {
				q.work = min(r.ExpFloat64()*a.wait()/a.load, limit)
			}
		}
		gap = tail
	}
	for {
		next := r.ExpFloat64() * between
		if next >= gap {
			q.work = max(q.work-gap, 0)
			return
		}
		gap -= next
		q.work = max(q.work-next, 0) // Lindley
		n := 1
		if a.batch > 1 {
			n = 1 + int(math.Log(1-r.Float64())/math.Log(1-1/a.batch))
		}
		for range n {
			q.work = min(q.work+a.draw(r), limit)
		}
	}
}
