package events

import (
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/state"
)

// What is remembered of a hop: for each statistic whether it is used, and then the bytes of package detect behind their
// length and the open finding; before version 6 the finding of its silence; what is known of packets that wait.

func (c *coder) hopState(h *hop) {
	for i := range h.series {
		c.series(&h.series[i])
	}
	if c.version < 6 {
		c.finding(&h.silence)
	}
	c.waiting(&h.waiting)
}

func (c *coder) series(s *series) {
	c.flag(&s.used)
	if !s.used {
		return
	}
	c.history(&s.Hop)
	c.finding(&s.finding)
}

func (c *coder) history(h *detect.Hop) {
	c.part("history", h.Code)
}

// part codes what another package remembers, behind its length.
func (c *coder) part(field string, code func(*state.Coder)) {
	if c.Reading() {
		n := 0
		number(c, &n)
		c.Within(field, n, code)
		return
	}
	b := state.Append(nil, code)
	n := len(b)
	number(c, &n)
	c.Bytes(field, b)
}
