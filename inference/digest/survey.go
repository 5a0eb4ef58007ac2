package digest

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/survey"
	"github.com/hopscope/hopscope/inference/window"
)

// MaxDeviations is how many flows whose digests contradict the map a window lists.
const MaxDeviations = 4 * survey.MaxFlows

const (
	// longUnknown is how many digests of a flow may leave its path unknown before it is watched.
	longUnknown = 64
	// unwatched is for how many digests a flow that was watched in vain, or that there was no room for, is left alone.
	unwatched = 1024
)

// watch passes a digest to the survey of errors of the map, if its flow is watched, or in trouble from now on. At is
// where the flow is among those with digests.
func (d *Reader) watch(x *flow, at uint32, t *pathtrace.Tracer, r *decode.Report, value uint64, e pathtrace.Event) {
	switch e {
	case pathtrace.Decoded, pathtrace.Changed, pathtrace.Revised, pathtrace.Returned, pathtrace.Confirmed:
		_, x.deviant = t.Deviation(&x.trace, d.nodes[:0])
	}
	if d.maps[t] == nil {
		return
	}
	if x.watched == 0 {
		if x.unwatched > 0 {
			x.unwatched--
			return
		}
		if !troubled(x, e) {
			return
		}
		if x.watched = d.survey.Begin(d.maps[t], &r.Flow, at); x.watched == 0 {
			x.unwatched = unwatched
			return
		}
	}
	d.survey.Add(x.watched, int(r.Digest.Hops), pathtrace.Packet{ID: r.Digest.ID, Digest: value}, r.Time)
}

// troubled reports whether the digests of a flow contradict the map, or leave its path unknown for long.
func troubled(x *flow, e pathtrace.Event) bool {
	switch e {
	case pathtrace.Revised, pathtrace.Inconsistent, pathtrace.Contradiction, pathtrace.Untraceable, pathtrace.Ignored:
		return true
	case pathtrace.Pending:
		n, _ := x.trace.Digests()
		return n >= longUnknown && !x.trace.Known()
	}
	return x.deviant
}

// cutSurvey ends the window of the survey, and lists the flows whose digests contradict the map.
func (d *Reader) cutSurvey(p *window.Partial) {
	d.survey.Survey(func(v *inference.Deviation) {
		c := *v
		if c.Ingress != inference.NoNode {
			c.Ingress |= d.base
		}
		c.Errors = slices.Clone(v.Errors)
		for i := range c.Errors {
			c.Errors[i] = c.Errors[i].Based(d.base)
		}
		p.AddDeviation(&c)
	}, func(owner uint32) { d.flows[owner].watched, d.flows[owner].unwatched = 0, unwatched })
}
