package events

import "github.com/hopscope/hopscope/inference/detect"

// What is remembered of a hop: for each statistic whether it is used, and then the bytes of package detect behind their
// length and the open finding; the finding of its silence; what is known of packets that wait.

func (c *coder) hopState(h *hop) {
	for i := range h.series {
		c.series(&h.series[i])
	}
	c.finding(&h.silence)
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
	if c.Reading() {
		n := 0
		number(c, &n)
		c.Within("history", n, h.Code)
		return
	}
	b := h.AppendState(nil)
	n := len(b)
	number(c, &n)
	c.Bytes("history", b)
}
