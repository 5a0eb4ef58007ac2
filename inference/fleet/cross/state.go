package cross

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// crossVersion is the first byte of the state of a crossing. Version 1 has neither gaps nor eras, and is written where
// there are none.
const crossVersion = 2

// maxRunName is the most bytes of the name of a run: a collector of 253, a slash, and 16 digits.
const maxRunName = 253 + 1 + 16

// Extended numbers begin at firstEpoch and grow. The bounds keep sums and differences of them from wrapping.
const (
	nearest  = firstEpoch / 2
	furthest = 1 << 62
)

// AppendState appends the state of c between two windows, for ReadState. Equal states have the same bytes.
func (c *Crossing) AppendState(b []byte) []byte { return state.Append(b, c.code) }

// ReadState makes c know what AppendState wrote, by a crossing whose limits were not higher. Other bytes are refused
// with a [*state.Error], and then c is empty.
func (c *Crossing) ReadState(b []byte) error {
	refused := c.stats.refused
	c.clear()
	c.stats.refused = refused
	err := state.Read("state of exporters and flows", b, c.code)
	if err != nil {
		c.clear()
	}
	return err
}

func (x *Crossing) code(c *state.Coder) {
	newest := uint8(crossVersion)
	if !c.Reading() && x.former() {
		newest--
	}
	version := c.Version(1, newest)
	state.Int(c, "end", &x.end, &x.swept)
	state.Map(c, "exporters", x.limits.Exporters, 28, x.exporters, inference.ExporterKey.Compare, func(k *inference.ExporterKey, v **exporter, c *state.Coder) {
		c.Addr("exporter", &k.Addr)
		state.Fixed(c, "exporter", &k.HWID)
		k.CodeNode(c)
		if *v == nil {
			*v = &exporter{}
		}
		(*v).code(c, &x.limits, version, x.end)
	})
	compare := func(a, b decode.FlowKey) int { return a.Compare(&b) }
	state.Map(c, "flows", x.limits.Flows, 44, x.flows, compare, func(k *decode.FlowKey, v **flow, c *state.Coder) {
		c.Flow("flow", k)
		if *v == nil {
			*v = &flow{}
		}
		(*v).code(c)
	})
}

// former reports whether version 1 can hold all of the state.
func (x *Crossing) former() bool {
	for _, e := range x.exporters {
		if e.shared || len(e.eras) > 0 || e.goneOut != 0 || e.missed != 0 || e.base != x.end {
			return false
		}
		for _, s := range e.streams {
			if len(s.gaps) > 0 || s.passed != s.head() {
				return false
			}
		}
	}
	return true
}

func (x *exporter) code(c *state.Coder, l *Limits, version uint8, end int64) {
	if version == 1 {
		x.codeFormer(c, l, end)
		return
	}
	c.Text("owner", maxRunName, &x.owner)
	state.Int(c, "exporter", &x.last, &x.base, &x.gone, &x.goneOut, &x.claimed, &x.missed)
	c.Flag("exporter", &x.shared)
	state.List(c, "eras", maxEras, 3, &x.eras, func(e *era, c *state.Coder) {
		c.Text("former owner", maxRunName, &e.former)
		state.Int(c, "era", &e.after, &e.until)
	})
	c.Check("eras", !x.shared || len(x.eras) > 0)
	x.codeClaims(c)
	state.Pointers(c, "streams", maxStreams, 14, &x.streams, func(s *stream, c *state.Coder) {
		s.code(c, l)
		state.UintTo(c, "passed number", furthest, &s.passed)
		s.codeGaps(c)
	})
}

// codeFormer codes an exporter as version 1 has it.
func (x *exporter) codeFormer(c *state.Coder, l *Limits, end int64) {
	var e era
	var since, due int64
	c.Text("owner", maxRunName, &x.owner, &e.former)
	state.Int(c, "exporter", &since, &x.last, &e.until, &x.gone, &x.claimed, &due)
	c.Flag("exporter", &x.shared)
	x.codeClaims(c)
	state.Pointers(c, "streams", maxStreams, 12, &x.streams, func(s *stream, c *state.Coder) { s.code(c, l) })
	if !c.Reading() || !c.OK() {
		return
	}
	if e.after = since - 1; x.shared || e.until > 0 {
		x.eras = append(x.eras, e)
	}
	if x.base = e.after; !x.shared {
		x.base = end
		for _, s := range x.streams {
			s.passed = s.head()
		}
	}
}

func (x *exporter) codeClaims(c *state.Coder) {
	state.List(c, "claims", maxClaims, 5, &x.claims, func(k *claim, c *state.Coder) {
		state.Int(c, "claim", &k.end, &k.lost)
		state.Uint(c, "claim", &k.provisional, &k.down, &k.restarts)
	})
}

func (s *stream) codeGaps(c *state.Coder) {
	next := uint64(0)
	state.List(c, "gaps", maxGaps, 3, &s.gaps, func(g *gap, c *state.Coder) {
		skip, length := g.first-next, g.last-g.first
		state.UintTo(c, "gap", furthest, &skip, &length)
		c.Check("gap", next+skip+length < furthest && (next > 0 || skip >= nearest))
		state.Int(c, "gap", &g.end)
		g.first, g.last = next+skip, next+skip+length
		next += skip + length + 1
	})
}

func (s *stream) code(c *state.Coder, l *Limits) {
	state.FixedTo(c, "width", 32, &s.width)
	c.Check("width", s.width > 0)
	c.Flag("mark", &s.marked)
	state.Uint(c, "epoch", &s.epoch)
	state.UintTo(c, "edge", furthest, &s.edge, &s.mark)
	members := len(s.members)
	c.Len("members", maxMembers, 5, &members)
	state.Int(c, "mark", &s.markEnd, &s.heard)
	state.Repeat(c, members, &s.members, func(m *listener, c *state.Coder) {
		c.Text("member", maxRunName, &m.from)
		state.Uint(c, "member", &m.to)
		state.Uint(c, "member", &m.epoch)
		state.UintTo(c, "member", furthest, &m.head)
		c.Check("member", m.head >= nearest)
		state.Int(c, "member", &m.heard)
		c.Check("member", !c.Reading() || s.member(m.from, m.to) == nil)
	})
	next := uint64(0)
	state.List(c, "runs", max(l.Runs, 2), 3, &s.runs, func(r *window.Run, c *state.Coder) {
		skip, length := r.First-next, r.Last-r.First
		missing := length + 1 - r.Count
		state.UintTo(c, "run", furthest, &skip, &length)
		state.UintTo(c, "run", length, &missing)
		c.Check("run", next+skip+length < furthest && (next > 0 || skip >= nearest))
		*r = window.Run{First: next + skip, Last: next + skip + length, Count: length + 1 - missing}
		next += skip + length + 1
	})
	c.Check("runs", len(s.runs) > 0)
}

func (x *flow) code(c *state.Coder) {
	c.Text("owner", maxRunName, &x.owner)
	state.Uint(c, "path", &x.id)
	state.Uint(c, "changes", &x.changes, &x.ahead)
	hops := len(x.path)
	c.Len("path", math.MaxInt, 3, &hops)
	state.Int(c, "flow", &x.last)
	state.Repeat(c, hops, &x.path, func(h *inference.HopKey, c *state.Coder) {
		state.Uint(c, "path", &h.Node, &h.EgressIf)
		c.Flag("path", &h.Other)
	})
}
