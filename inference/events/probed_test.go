package events

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/ways"
	"github.com/hopscope/hopscope/internal/testkit"
)

// probedFabric is a fat-tree of 20 routers without telemetry and an agent at each of its eight edges. Each session passes
// fixed routers, and sends a hundred probes in a window.
type probedFabric struct {
	d        *Detector
	rng      *rand.Rand
	start    int64
	sessions []probedSession
	lossy    map[routerLink]float64
	loopback bool            // routers answer with one address each, and not with that of the interface
	mute     map[uint32]bool // routers that do not answer
}

type probedSession struct {
	flow    decode.FlowKey
	routers []uint32 // in their order, with the agent before and the host behind them
}

// routerLink is a direction of a link between two routers, hosts or agents.
type routerLink struct{ from, to uint32 }

// Numbers of routers: edges from 1, those above them from 20, cores from 40; hosts from 100.
func newProbedFabric(seed uint64) *probedFabric {
	p := &probedFabric{d: New(DefaultConfig()), rng: rand.New(rand.NewPCG(seed, 31)), lossy: map[routerLink]float64{}, mute: map[uint32]bool{}}
	for from := range uint32(8) {
		for to := range uint32(8) {
			for port := range uint32(4) {
				if from == to {
					continue
				}
				s := probedSession{flow: decode.FlowKey{
					Src: decode.AddrFrom4([]byte{10, 1, byte(100 + from), 0}), Dst: decode.AddrFrom4([]byte{10, 1, byte(100 + to), 0}),
					SrcPort: uint16(40000 + port), DstPort: 862, Proto: 17, IPVersion: 4,
				}}
				up, core := uint32(p.rng.IntN(2)), uint32(p.rng.IntN(2))
				s.routers = []uint32{100 + from, 1 + from, 20 + from/2*2 + up}
				if from/2 != to/2 {
					s.routers = append(s.routers, 40+2*up+core, 20+to/2*2+up)
				}
				s.routers = append(s.routers, 1+to, 100+to)
				p.sessions = append(p.sessions, s)
			}
		}
	}
	return p
}

// path is the way of a session as its agent reports it.
func (p *probedFabric) path(s *probedSession) []inference.HopKey {
	path := []inference.HopKey{{Node: 900 + s.routers[0], Other: true}}
	for i, r := range s.routers[1:] {
		before := s.routers[i]
		switch {
		case p.mute[r]:
			path = append(path, inference.HopKey{})
			continue
		case p.loopback || r >= 100:
			before = 0
		}
		path = append(path, inference.HopKey{Node: 10<<24 | 1<<16 | r<<8 | before})
	}
	return path
}

// router is the number of the router of an address, or of a host or an agent.
func router(node uint32) uint32 {
	if node < 1<<16 {
		return node - 900
	}
	return node >> 8 & 0xff
}

// step runs n windows, and returns what is published.
func (p *probedFabric) step(n int) (published []inference.Finding) {
	for range n {
		w := inference.Window{Start: p.start, End: p.start + int64(time.Second)}
		p.start = w.End
		for i := range p.sessions {
			s := &p.sessions[i]
			l := inference.FlowLoss{Flow: s.flow, Packets: 100, Path: p.path(s)}
			for range l.Packets {
				for k := 1; k < len(s.routers); k++ {
					if ratio := p.lossy[routerLink{s.routers[k-1], s.routers[k]}]; ratio > 0 && p.rng.Float64() < ratio {
						l.Lost++
						break
					}
				}
			}
			w.Losses = append(w.Losses, l)
		}
		published = append(published, p.d.Step(&w)...)
		p.d.Mark(&w)
	}
	return published
}

// hides reports whether a lossy link leads into l, or l into one. All sessions over the first of them can be sessions over the second,
// the only one to a host: then other links explain the losses as well.
func (p *probedFabric) hides(l routerLink) bool {
	for o := range p.lossy {
		if o.to == l.from || l.to == o.from {
			return true
		}
	}
	return false
}

// TestProbedLinks names lossy links by probes alone, each in its direction, and no other one. It ends what it named when
// the link is well again, and a state in between goes on alike.
func TestProbedLinks(t *testing.T) {
	for seed := range uint64(testkit.Rounds(2, 20)) {
		for _, x := range []struct {
			name   string
			ratios []float64
			change func(*probedFabric)
		}{
			{"one of 1 %", []float64{.01}, func(*probedFabric) {}},
			{"two of 5 %", []float64{.05, .05}, func(*probedFabric) {}},
			{"two that lose all", []float64{1, 1}, func(*probedFabric) {}},
			{"one address a router", []float64{.05, .05}, func(p *probedFabric) { p.loopback = true }},
		} {
			t.Run(fmt.Sprintf("%s/%d", x.name, seed), func(t *testing.T) {
				p := newProbedFabric(seed)
				x.change(p)
				if early := p.step(20); len(early) > 0 {
					t.Fatalf("without a fault: %+v", early)
				}
				for len(p.lossy) < len(x.ratios) {
					s := &p.sessions[p.rng.IntN(len(p.sessions))]
					k := 1 + p.rng.IntN(len(s.routers)-1)
					if l := (routerLink{s.routers[k-1], s.routers[k]}); !p.hides(l) {
						p.lossy[l] = x.ratios[len(p.lossy)]
					}
				}
				named := map[routerLink]bool{}
				for _, f := range p.step(30) {
					l := routerLink{router(f.Element.Node), router(f.Element.Peer)}
					if f.Node == f.Element.Peer {
						l = routerLink{l.to, l.from}
					}
					if f.Kind != inference.PacketLoss || f.Evidence == 0 && f.Element.Kind == inference.LinkElement && p.lossy[l] == 0 && !strings.Contains(f.Text, "cannot be distinguished") {
						t.Errorf("%v lose, and found is %+v", p.lossy, f)
					}
					named[l] = true
				}
				for l := range p.lossy {
					if !named[l] {
						t.Errorf("%v is not among %v", l, named)
					}
				}
				second, saved := New(DefaultConfig()), p.d.AppendState(nil)
				if err := second.ReadState(saved); err != nil || !bytes.Equal(second.AppendState(nil), saved) {
					t.Fatalf("the state is read as another one: %v", err)
				}
				p.d = second
				clear(p.lossy)
				p.step(100)
				if open := p.d.Open(); len(open) > 0 {
					t.Errorf("the links are well, and open is %+v", open)
				}
			})
		}
	}
}

// TestProbedSilentRouters names the link around a router that answers no trace, and says so.
func TestProbedSilentRouters(t *testing.T) {
	p := newProbedFabric(3)
	p.mute[21] = true
	p.step(20)
	p.lossy[routerLink{21, 40 + 2}] = .2
	found := p.step(10)
	if len(found) == 0 || router(found[0].Element.Peer) != 42 || !strings.Contains(found[0].Text, "; between them 1 router did not answer a trace") {
		t.Errorf("%+v", found)
	}
}

// TestProbedWithoutWay refuses a state with probes that have neither agent nor host.
func TestProbedWithoutWay(t *testing.T) {
	d := New(DefaultConfig())
	for _, s := range d.journal.States {
		if w, ok := s.(*ways.ProbeWays); ok {
			w.Observe(newProbedFabric(1).sessions[0].flow, 1)
		}
	}
	if err := New(DefaultConfig()).ReadState(d.AppendState(nil)); err == nil || !strings.Contains(err.Error(), "way of probes") {
		t.Errorf("read with %v", err)
	}
}
