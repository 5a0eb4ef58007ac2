package shard

import (
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/window"
)

// arrivalsOf ends the window and returns the arrivals in it.
func arrivalsOf(s *State, end int64) (list []window.Arrival, other uint64) {
	var p window.Partial
	c := s.Cut(end)
	c.AddTo(&p)
	s.Recycle(c)
	return slices.Clone(p.Arrivals()), p.OtherArrivals
}

// TestArrivals: a flow is listed when its whole path is known, and once more after a window without it.
func TestArrivals(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemoryBytes, cfg.MaxPathChanges = 1<<22, 5
	s, quiet := New(cfg, 1), New(cfg, 1)
	s.ListArrivals()
	at := int64(1e18)
	see := func(reports ...*decode.Report) {
		s.Update(reports)
		quiet.Update(reports)
	}
	end := func() []window.Arrival {
		at += 1e9
		if list, other := arrivalsOf(quiet, at); len(list) != 0 || other != 0 {
			t.Errorf("%+v and %d are listed unasked", list, other)
		}
		list, other := arrivalsOf(s, at)
		if other != 0 {
			t.Errorf("%d others", other)
		}
		return list
	}
	a, b := []decode.Hop{hop(1, 1, 10), hop(2, 1, 10)}, []decode.Hop{hop(1, 2, 10), hop(3, 1, 10)}
	cut := stack(2, at+1, a[:1]...)
	cut.INT, cut.Flags = decode.V21, decode.Truncated
	probe := stack(3, at+2, a...)
	probe.Kind = decode.KindProbe
	see(stack(1, at+5, a...), stack(1, at+6, a...), cut, probe, postcard(4, at+3, 7, 64))
	got := end()
	if len(got) != 1 || got[0].Flow != flowKey(1) || got[0].Time != at-1e9+5 || got[0].PathID == 0 || got[0].Changes != 0 || !slices.Equal(pathNodes(got[0].Path), []uint32{1, 2}) {
		t.Fatalf("first window: %+v", got)
	}
	id := got[0].PathID
	see(stack(1, at+1, a...), stack(1, at+2, b...), stack(2, at+3, a...))
	if got = end(); len(got) != 1 || got[0].Flow != flowKey(2) || got[0].PathID != id {
		t.Errorf("a path that becomes whole: %+v", got)
	}
	if got = end(); len(got) != 0 {
		t.Errorf("silence: %+v", got)
	}
	see(stack(1, at+1, a...), stack(2, at+2, a...))
	if got = end(); len(got) != 2 || got[0].Flow != flowKey(1) || got[0].Changes != 2 || got[0].PathID != id || got[1].Changes != 0 {
		t.Errorf("after a window without them: %+v", got)
	}
	var many []*decode.Report
	for i := range uint32(60) {
		many = append(many, stack(100+i*37%60, at+int64(i*37%60), b...))
	}
	see(many...)
	list, other := arrivalsOf(s, at+1e9)
	if len(list) != 5 || other != 55 || list[0].Time != at || list[4].Time != at+4 || !slices.Equal(pathNodes(list[4].Path), []uint32{1, 3}) {
		t.Errorf("too many: %+v and %d", list, other)
	}
}
