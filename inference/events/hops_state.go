package events

import (
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// The state of a hop: for each statistic whether it is used, the length and bytes of package detect, and the open
// finding. Before version 6 the finding of its silence follows. Then come the values about packets that wait.

func codeHopState(c *subject.Coder, h *hop) {
	for i := range h.series {
		codeSeries(c, &h.series[i])
	}
	if c.Version < 6 {
		c.Finding(&h.silence)
	}
	codeWaiting(c, &h.waiting)
}

func codeSeries(c *subject.Coder, s *series) {
	c.Flag(&s.used)
	if !s.used {
		return
	}
	codeHistory(c, &s.Hop)
	c.Finding(&s.finding)
}

func codeHistory(c *subject.Coder, h *detect.Hop) {
	c.Part("history", h.Code)
}
