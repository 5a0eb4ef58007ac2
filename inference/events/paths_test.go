package events

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// path reads a path such as "1:2-7:1".
func path(t *testing.T, s string) []inference.HopKey {
	t.Helper()
	p, err := inference.ParsePath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// change is a flow that moved.
func change(t *testing.T, n uint32, from, to string) inference.PathChange {
	t.Helper()
	return inference.PathChange{Flow: flow(n), From: path(t, from), To: path(t, to), Packets: 100}
}

// seen are hops with packets, with the links between them as a flow shows them.
func seen(t *testing.T, paths ...string) *inference.Window {
	t.Helper()
	w := &inference.Window{}
	for i, s := range paths {
		f := inference.FlowStats{Key: flow(uint32(1000 + i))}
		for _, h := range path(t, s) {
			f.Hops = append(f.Hops, inference.FlowHop{HopKey: h})
			w.Hops = append(w.Hops, inference.HopStats{HopKey: h, Count: 5})
		}
		w.Flows = append(w.Flows, f)
	}
	slices.SortFunc(w.Hops, func(a, b inference.HopStats) int { return a.HopKey.Compare(b.HopKey) })
	w.Hops = slices.CompactFunc(w.Hops, func(a, b inference.HopStats) bool { return a.HopKey == b.HopKey })
	return w
}

// steps returns the texts of the findings that are published in consecutive windows; those that end begin with "end ".
func steps(d *Detector, windows ...*inference.Window) (out []string) {
	end := int64(d.journal.Windows)
	for _, w := range windows {
		end++
		w.End = end
		for _, f := range d.Step(w) {
			s := f.Element.String() + ": " + f.Text
			if f.End != 0 {
				s = "end " + s
			}
			out = append(out, s)
		}
	}
	return out
}

func wantTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && i < len(got) && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("reported\n%s\nwant what begins with\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLinkFails: flows of both directions leave a link. It is one finding, which lasts until packets pass the link
// again, and flows that return are no further one.
func TestLinkFails(t *testing.T) {
	d := New(DefaultConfig())
	before := func() *inference.Window { return seen(t, "1:1-2:1-3:9", "3:1-2:2-1:9", "1:2-4:1-3:9", "3:2-4:2-1:9") }
	during := func() *inference.Window { return seen(t, "1:2-4:1-3:9", "3:2-4:2-1:9", "3:1-2:9") }
	steps(d, before(), before())
	w := during()
	for n := range uint32(4) {
		w.Paths = append(w.Paths, change(t, n, "1:1-2:1-3:9", "1:2-4:1-3:9"), change(t, 10+n, "3:1-2:2-1:9", "3:2-4:2-1:9"), change(t, 20+n, "2:2-1:9", "2:1-3:2-4:2-1:9"))
	}
	wantTexts(t, steps(d, w), "link 1–2: 12 flows left the link between nodes 1 and 2; one of them, ")
	for range 50 {
		wantTexts(t, steps(d, during()))
	}
	w = before()
	for n := range uint32(4) {
		w.Paths = append(w.Paths, change(t, n, "1:2-4:1-3:9", "1:1-2:1-3:9"), change(t, 10+n, "3:2-4:2-1:9", "3:1-2:2-1:9"))
	}
	wantTexts(t, steps(d, w))
	wantTexts(t, steps(d, before(), before(), before()), "end link 1–2: packets pass the link between nodes 1 and 2 again, which 12 flows had left")
	w = before()
	w.Paths = append(w.Paths, change(t, 20, "2:1-3:2-4:2-1:9", "2:2-1:9")) // late
	wantTexts(t, steps(d, w, before(), before(), before()))
	if len(d.Open()) != 0 {
		t.Errorf("open: %+v", d.Open())
	}
}

// TestPolicy: one node sends its flows another way, while the link is fine: packets still come to the node over it.
func TestPolicy(t *testing.T) {
	d := New(DefaultConfig())
	all := seen(t, "1:1-2:1-3:9", "3:1-2:2-1:9", "1:2-4:1-3:9")
	steps(d, all)
	w := seen(t, "3:1-2:2-1:9", "1:2-4:1-3:9")
	for n := range uint32(6) {
		w.Paths = append(w.Paths, change(t, n, "1:1-2:1-3:9", "1:2-4:1-3:9"))
	}
	wantTexts(t, steps(d, w), "node 1: node 1 sends 6 flows another way: they left the link between nodes 1 and 2; one of them, ")
}

// TestMemberIsBack: flows leave one of two links to a node and return in the same window, in which others are seen on
// it as well. The link failed for a moment, and no node sends them elsewhere. Without their return it does.
func TestMemberIsBack(t *testing.T) {
	for _, back := range []bool{true, false} {
		d := New(DefaultConfig())
		all := func() *inference.Window {
			return seen(t, "1:1-2:1-3:9", "1:1-2:1-3:9", "1:1-2:1-3:9", "1:3-2:1-3:9", "1:2-4:1-3:9", "3:1-2:2-1:9")
		}
		steps(d, all(), all())
		w := all()
		for n := range uint32(8) {
			to := []string{"1:3-2:1-3:9", "1:2-4:1-3:9"}[n%2]
			if w.Paths = append(w.Paths, change(t, n, "1:1-2:1-3:9", to)); back {
				w.Paths = append(w.Paths, change(t, n, to, "1:1-2:1-3:9"))
			}
		}
		want := "node 1: node 1 sends 8 flows another way"
		if back {
			want = "link 1:1–2: 8 flows left interface 1:1 for another one to the same node"
		}
		wantTexts(t, steps(d, w), want)
	}
}

// TestFlowsAndChanges: one flow that changes 53 times is one finding, and no link that 53 flows left.
func TestFlowsAndChanges(t *testing.T) {
	for _, tt := range []struct {
		name    string
		packets uint64
		want    string
	}{
		{"flaps", 100, "flow 10.0.0.1:1000 > 10.9.9.9:80 tcp: 10.0.0.1:1000 > 10.9.9.9:80 tcp left 1:1-2:1-3:9 for 1:2-4:1-3:9 after 100 packets, change 53: it goes back and forth between 2 paths"},
		{"sprayed", 1, "flow 10.0.0.1:1000 > 10.9.9.9:80 tcp: 1 flow is sent over several paths in turn, packet by packet; one of them, 10.0.0.1:1000 > 10.9.9.9:80 tcp, by "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(DefaultConfig())
			turns := func() *inference.Window {
				w := &inference.Window{}
				a, b := "1:1-2:1-3:9", "1:2-4:1-3:9"
				for range 53 {
					c := change(t, 1, a, b)
					c.Packets = tt.packets
					w.Paths = append(w.Paths, c)
					a, b = b, a
				}
				return w
			}
			wantTexts(t, steps(d, turns()), tt.want)
			for range 10 {
				wantTexts(t, steps(d, turns()))
			}
			empty := &inference.Window{}
			if got := steps(d, empty, empty, empty); len(got) != 1 || !strings.HasPrefix(got[0], "end flow") {
				t.Errorf("reported %q, want its end", got)
			}
		})
	}
}

// TestSprayedIsLearnt: that flows are sent over several paths in turn is a finding for some time, and then taken as it
// is.
func TestSprayedIsLearnt(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LearnAfter = 20
	d := New(cfg)
	var got []string
	for range 60 {
		w := &inference.Window{}
		for n := range uint32(3) {
			for i := range 8 {
				c := change(t, n, "1:1-2:1-3:9", "1:2-4:1-3:9")
				if c.Packets = 1; i%2 == 1 {
					c.From, c.To = c.To, c.From
				}
				w.Paths = append(w.Paths, c)
			}
		}
		got = append(got, steps(d, w)...)
	}
	wantTexts(t, got, ": 3 flows are sent over several paths in turn, packet by packet; one of them, ", "end : 3 flows are sent over several paths in turn, which is taken for load balancing")
}

// TestRound: a flow whose packets went round in a loop names the nodes at which they did.
func TestRound(t *testing.T) {
	d := New(DefaultConfig())
	w := &inference.Window{Paths: []inference.PathChange{change(t, 1, "9:4-2:4-11:1-19:2", "9:4-2:4-11:4-2:4-11:1-19:2")}}
	got := steps(d, w)
	if len(got) != 1 || !strings.HasPrefix(got[0], "link 2–11: ") || !strings.HasSuffix(got[0], "packets went round between nodes 2 and 11") {
		t.Errorf("reported %q", got)
	}
}

// TestRounds: flows that loop at one link are one finding of that link, wherever they left their ways. Their changes on
// their return belong to it.
func TestRounds(t *testing.T) {
	d := New(DefaultConfig())
	var w, back inference.Window
	for i := range uint32(6) {
		from := fmt.Sprintf("%d:4-2:4-11:1-19:2", 30+i)
		to := fmt.Sprintf("%d:4-2:4-11:4-2:4-11:1-19:2", 30+i)
		w.Paths = append(w.Paths, change(t, i, from, to))
		back.Paths = append(back.Paths, change(t, i, to, from))
	}
	got := steps(d, &w)
	if len(got) != 1 || !strings.HasPrefix(got[0], "link 2–11: 6 flows came to the link between nodes 2 and 11; one of them") || !strings.HasSuffix(got[0], "packets go round between nodes 2 and 11") {
		t.Errorf("the loop is reported as %q", got)
	}
	if got = steps(d, &back); len(got) > 0 {
		t.Errorf("the way back is reported as %q", got)
	}
}
