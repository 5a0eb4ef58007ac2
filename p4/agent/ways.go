package agent

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/p4/stamp"
)

const (
	traceWait  = 400 * time.Millisecond // for the answers of routers, in each round of a trace
	tracePause = time.Millisecond       // between two packets: routers answer few a second
)

// trace traces the ways of sessions with a port, over and over. A session without an answer, whose number of routers is
// unknown, comes later.
func (x *stampAgent) trace(ctx context.Context) error {
	every := x.agent.cfg.STAMP.Trace
	var list []*stampSender
	for _, s := range x.sessions {
		if s.port > 0 && every > 0 {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		<-ctx.Done()
	}
	for wait := min(every, 3*traceWait); retry.Sleep(ctx, wait); wait = every {
		x.traceAll(ctx, list)
	}
	return nil
}

// traced is a session in a trace.
type traced struct {
	*stampSender
	line *udpLine
	*stamp.Trace
	known bool // the whole way, by traces before
}

// traceAll traces the ways of sessions at the same time, in random order: a router that answers few a second answers
// the first ones. Unknown ways come before the others. Numbers are random, too, so that others cannot predict what a
// router would repeat.
func (x *stampAgent) traceAll(ctx context.Context, list []*stampSender) {
	var under []traced
	for _, s := range list {
		s.mu.Lock()
		line, routers := s.line, s.session.Routers()
		known := s.way.Epoch > 0 && !slices.Contains(s.way.Hops, netip.Addr{})
		s.mu.Unlock()
		if line != nil && routers > 0 {
			under = append(under, traced{s, line, stamp.NewTrace(rand.Uint32(), routers), known})
		}
	}
	rand.Shuffle(len(under), func(i, k int) { under[i], under[k] = under[k], under[i] })
	slices.SortStableFunc(under, func(a, b traced) int {
		switch {
		case a.known == b.known:
			return 0
		case b.known:
			return -1
		}
		return 1
	})
	buf := make([]byte, 0, stamp.TraceLen)
	for asked := true; asked; {
		asked = false
		for _, t := range under {
			for _, ttl := range t.Round() {
				asked = true
				_ = t.line.sendTTL(t.AppendPayload(buf[:0], ttl), ttl) // a packet that is not sent has no answer
				if !retry.Sleep(ctx, tracePause) {
					return
				}
			}
		}
		if asked && !retry.Sleep(ctx, traceWait) {
			return
		}
		for _, t := range under {
			t.line.routers(func(payload []byte, from netip.Addr) { t.Observe(payload, from) })
		}
	}
	for _, t := range under {
		hops := t.Hops()
		t.mu.Lock()
		changed := t.way.Step(hops)
		epoch := t.way.Epoch
		t.mu.Unlock()
		if changed {
			x.agent.log.Info("a session of STAMP takes another way", "session", t.name, "way", epoch, "routers", hops)
		}
	}
}
