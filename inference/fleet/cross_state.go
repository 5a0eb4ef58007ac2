package fleet

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// crossVersion is the first byte of the state of a crossing.
const crossVersion = 1

// Extended numbers begin at firstEpoch and grow. The bounds keep sums and differences of them from wrapping.
const (
	nearest  = firstEpoch / 2
	furthest = 1 << 62
)

// AppendState appends what c knows between two windows, for ReadState. What was the same for two of them has the same bytes.
func (c *crossing) AppendState(b []byte) []byte { return state.Append(b, c.code) }

// ReadState makes c know what AppendState wrote, by a crossing whose limits were not higher. Other bytes are refused with a
// [*state.Error], and then c knows nothing.
func (c *crossing) ReadState(b []byte) error {
	refused := c.stats.Refused
	c.clear()
	c.stats.Refused = refused
	err := state.Read("state of exporters and flows", b, c.code)
	if err != nil {
		c.clear()
	}
	return err
}

func (x *crossing) code(c *state.Coder) {
	c.Version(crossVersion, crossVersion)
	state.Int(c, "end", &x.end, &x.swept)
	state.Map(c, "exporters", x.limits.Exporters, 28, x.exporters, inference.ExporterKey.Compare, func(k *inference.ExporterKey, v **exporter, c *state.Coder) {
		c.Addr("exporter", &k.Addr)
		state.Fixed(c, "exporter", &k.HWID)
		k.CodeNode(c)
		if *v == nil {
			*v = &exporter{}
		}
		(*v).code(c, &x.limits)
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

func (x *exporter) code(c *state.Coder, l *CrossLimits) {
	c.Text("owner", maxRunName, &x.owner, &x.former)
	state.Int(c, "exporter", &x.since, &x.last, &x.until, &x.gone, &x.claimed, &x.due)
	c.Flag("exporter", &x.shared)
	state.List(c, "claims", maxClaims, 5, &x.claims, func(k *claim, c *state.Coder) {
		state.Int(c, "claim", &k.end, &k.lost)
		state.Uint(c, "claim", &k.provisional, &k.down, &k.restarts)
	})
	state.Pointers(c, "streams", maxStreams, 12, &x.streams, func(s *stream, c *state.Coder) { s.code(c, l) })
}

func (s *stream) code(c *state.Coder, l *CrossLimits) {
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
	state.List(c, "runs", max(l.Runs, 2), 3, &s.runs, func(r *inference.Run, c *state.Coder) {
		skip, length := r.First-next, r.Last-r.First
		missing := length + 1 - r.Count
		state.UintTo(c, "run", furthest, &skip, &length)
		state.UintTo(c, "run", length, &missing)
		c.Check("run", next+skip+length < furthest && (next > 0 || skip >= nearest))
		*r = inference.Run{First: next + skip, Last: next + skip + length, Count: length + 1 - missing}
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
