package events

import (
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// What is remembered of a hop: for each statistic whether it is used, and then the bytes of package detect behind their
// length and the open finding; before version 6 the finding of its silence; what is known of packets that wait.

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
