package topo

import (
	"math"
	"slices"
	"time"
)

// Place is the position of a node on the earth, in degrees: longitudes to the east and latitudes to the north.
type Place struct{ Longitude, Latitude float64 }

var nowhere = Place{math.NaN(), math.NaN()}

// Known reports whether p is on the earth.
func (p Place) Known() bool {
	return math.Abs(p.Longitude) <= 180 && math.Abs(p.Latitude) <= 90
}

// Light in glass takes 5 µs a kilometre, and the earth is taken for a sphere of its mean radius.
const (
	delayPerKm  = 5 * time.Microsecond
	earthRadius = 6371.0 // km
)

// Delay returns the time of light in a fibre along the great circle from p to q: less than over any real cable.
func (p Place) Delay(q Place) time.Duration {
	rad := func(d float64) float64 { return d * math.Pi / 180 }
	sin2 := func(x float64) float64 { return math.Sin(x/2) * math.Sin(x/2) }
	a := sin2(rad(q.Latitude-p.Latitude)) + math.Cos(rad(p.Latitude))*math.Cos(rad(q.Latitude))*sin2(rad(q.Longitude-p.Longitude))
	km := 2 * earthRadius * math.Asin(math.Sqrt(min(1, a)))
	return time.Duration(math.Round(km * float64(delayPerKm)))
}

// WithDelays returns the graph with a delay for the directions that have none. The function fill returns it, where 0
// leaves it unknown.
func (g *Graph) WithDelays(fill func(i int) time.Duration) *Graph {
	return g.withAttrs(func(i int, a *Attr) {
		if a.Delay == 0 {
			a.Delay = max(0, fill(i))
		}
	})
}

// WithCosts returns the graph with these costs of sending, whatever they were before.
func (g *Graph) WithCosts(cost func(i int) uint32) *Graph {
	return g.withAttrs(func(i int, a *Attr) { a.Cost = cost(i) })
}

// withAttrs returns the graph with other properties of the directions of its links.
func (g *Graph) withAttrs(change func(i int, a *Attr)) *Graph {
	out := *g
	out.attrs = make([]Attr, g.NumInterfaces())
	for i := range out.attrs {
		if out.attrs[i] = g.Attr(i); g.Link(i) >= 0 {
			change(i, &out.attrs[i])
		}
	}
	if !slices.ContainsFunc(out.attrs, func(a Attr) bool { return a != DefaultAttr }) {
		out.attrs = nil
	}
	return &out
}

// WithDelay returns the graph with this delay for the links that have none.
func (g *Graph) WithDelay(d time.Duration) *Graph {
	return g.WithDelays(func(int) time.Duration { return d })
}

// WithPlaceDelays returns the graph with delays by distance for the links that have none, where it is known where both ends are. A
// link within one place has a delay of 1 µs then, since 0 stands for one that is not known.
func (g *Graph) WithPlaceDelays() *Graph {
	return g.WithDelays(func(i int) time.Duration {
		p, ok := g.Place(g.Node(i))
		q, also := g.Place(g.Neighbor(i))
		if !ok || !also {
			return 0
		}
		return max(time.Microsecond, p.Delay(q))
	})
}
