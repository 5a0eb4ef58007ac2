package shard

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// pathEnds is a path of a plan with ten rounds a second, whose ends report to a shard once a second.
type pathEnds struct {
	s                *State
	now              int64
	sender, receiver decode.ProbeRounds
	turned           decode.ProbeRounds // the receiver's, at its report before
	epochs           [2]uint32          // of sender and receiver
	off, deaf        bool               // the sender does not run; the receiver does not
	quiet            bool               // the reports of both are lost
	unheard          bool               // the receiver does not know the sender
	plain            bool               // agents report counts alone
}

func newPathEnds() *pathEnds {
	x := &pathEnds{s: New(testConfig(), 1), now: 1e18, epochs: [2]uint32{7, 7}}
	x.sender = decode.ProbeRounds{End: decode.Sender, Count: 100}
	x.receiver = decode.ProbeRounds{End: decode.Receiver, Count: 200}
	x.window()
	return x
}

func (x *pathEnds) report(node uint32, epoch uint32, src byte, n *decode.ProbeRounds, c decode.ProbeCounts) {
	if n.Turn++; x.quiet {
		return
	}
	r := &decode.Report{Kind: decode.KindProbes, Time: x.now, NodeID: node, Has: decode.HasFlow}
	r.Flow = decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 0, 0, src}), Dst: decode.AddrFrom4([]byte{10, 0, 0, 2}), SrcPort: 49152, DstPort: 17769, Proto: 17, IPVersion: 4}
	if src == 0 {
		r.Flow.Src, r.Flow.SrcPort = decode.AddrFrom4([]byte{0, 0, 0, 0}), 49153
	}
	c.Path, c.Epoch = 3, epoch
	if !x.plain {
		*r.AddProbes() = decode.ProbeCounts{Path: 3, Epoch: epoch, Rounds: *n}
		x.s.Update([]*decode.Report{r})
	}
	if c.Sent|c.Received|c.Missed != 0 {
		*r.AddProbes() = c
		x.s.Update([]*decode.Report{r})
	}
}

// seconds lets time pass, in which so many of ten rounds a second are lost.
func (x *pathEnds) seconds(n int, lost uint32) {
	for range n {
		x.now += 1e9
		came := uint32(0)
		if !x.off {
			x.sender.Next += 10
			if came = 10 - lost; came > 0 && !x.deaf {
				x.receiver.Next, x.receiver.Received = x.sender.Next, x.receiver.Received+came
			}
			x.report(1, x.epochs[0], 1, &x.sender, decode.ProbeCounts{Sent: 10})
		}
		x.now += 3e8
		n := x.turned // rounds up to the latest one of the turn before
		n.End, n.Count, n.Turn = x.receiver.End, x.receiver.Count, x.receiver.Turn
		if x.unheard {
			x.report(2, x.epochs[1], 0, &n, decode.ProbeCounts{Missed: 10})
		} else if !x.deaf {
			x.report(2, x.epochs[1], 1, &n, decode.ProbeCounts{Received: came, Missed: 10 - came}) // also of a sender that does not run
		}
		x.receiver.Turn = n.Turn
		x.turned = x.receiver
		x.now -= 3e8
	}
}

// window ends the window, and returns what was lost in it, and what was missed of an unknown sender.
func (x *pathEnds) window() (lost, unheard int64) {
	w := cutOne(x.s, x.now)
	for i := range w.Probes {
		s := &w.Probes[i]
		if s.Unheard() {
			unheard += int64(s.Missed)
			continue
		}
		n, _ := s.Settled()
		lost += n
	}
	return lost, unheard
}

// TestRoundsSettle holds what is taken for lost of a path, by the totals of both of its ends.
func TestRoundsSettle(t *testing.T) {
	for name, tt := range map[string]struct {
		run       func(x *pathEnds)
		low, high int64
	}{
		"all come":              {func(x *pathEnds) { x.seconds(40, 0) }, 0, 0},
		"three of ten are lost": {func(x *pathEnds) { x.seconds(40, 3) }, 95, 120},
		"all are lost":          {func(x *pathEnds) { x.seconds(10, 0); x.seconds(40, 10) }, 360, 400},
		"reports are lost": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.quiet = true
			x.seconds(7, 0)
			x.quiet = false
			x.seconds(10, 0)
		}, 0, 0},
		"both are lost": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.quiet = true
			x.seconds(7, 4)
			x.quiet = false
			x.seconds(10, 0)
		}, 28, 28},
		"the sender ends":   {func(x *pathEnds) { x.seconds(10, 0); x.off = true; x.seconds(20, 0) }, 0, 0},
		"the receiver ends": {func(x *pathEnds) { x.seconds(10, 0); x.deaf = true; x.seconds(20, 0) }, 0, 0},
		"losses before both end": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.seconds(1, 5)
			x.seconds(5, 0)
			x.off, x.deaf = true, true
			x.seconds(20, 0)
		}, 5, 5},
		"the sender begins anew": {func(x *pathEnds) { x.seconds(10, 0); x.restart(true, false); x.seconds(20, 0) }, 0, 0},
		"it does while all are lost": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.sender.Next, x.sender.Count = 0, x.sender.Count+1
			x.seconds(20, 10)
		}, 130, 200},
		"the receiver begins anew": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.deaf = true
			x.seconds(5, 0)
			x.deaf = false
			x.restart(false, true)
			x.seconds(20, 0)
		}, 0, 0},
		"both begin anew": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.deaf = true
			x.seconds(5, 0)
			x.off = true
			x.seconds(2, 0)
			x.restart(true, true)
			x.deaf = false
			x.seconds(10, 0)
			x.off = false
			x.seconds(10, 0)
		}, 0, 0},
		"the sender has a plan first": {func(x *pathEnds) {
			x.seconds(10, 0)
			x.epochs[0] = 8
			x.restart(true, false)
			x.receiver.Received, x.receiver.Next = 0, 0
			x.turned = x.receiver
			x.deaf = true
			x.seconds(10, 0)
		}, 0, 0},
		"agents of an earlier version": {func(x *pathEnds) { x.plain = true; x.seconds(10, 0); x.seconds(20, 4); x.seconds(4, 0) }, 80, 80},
	} {
		x := newPathEnds()
		tt.run(x)
		if lost, _ := x.window(); lost < tt.low || lost > tt.high {
			t.Errorf("%s: %d lost, want %d to %d", name, lost, tt.low, tt.high)
		}
	}
}

// restart begins the counts of ends anew: with the sender's rounds those of the receiver do.
func (x *pathEnds) restart(sender, receiver bool) {
	if sender {
		x.sender.Next, x.sender.Count = 0, x.sender.Count+1
	}
	x.receiver.Count++
	x.receiver.First, x.receiver.Next, x.receiver.Received = x.sender.Next, x.sender.Next, 0
	x.turned = x.receiver
}

// overtaken lets rounds come that later ones overtook before the last turn.
func (x *pathEnds) overtaken(n uint32) {
	x.receiver.Received += n
	x.turned.Received += n
}

// TestRoundsOvertaken: rounds that come behind later ones, within two reports, are no losses. What came later than that is
// subtracted.
func TestRoundsOvertaken(t *testing.T) {
	x := newPathEnds()
	x.seconds(10, 0)
	x.seconds(1, 5)
	x.seconds(1, 0)
	x.overtaken(5)
	x.seconds(5, 0)
	if lost, _ := x.window(); lost != 0 {
		t.Errorf("%d are lost that were overtaken", lost)
	}
	x.seconds(1, 5)
	x.seconds(5, 0)
	if lost, _ := x.window(); lost != 5 {
		t.Errorf("%d are lost, want 5", lost)
	}
	x.overtaken(5)
	x.seconds(5, 0)
	if lost, _ := x.window(); lost != -5 {
		t.Errorf("%d are lost, want -5", lost)
	}
}

// TestRoundsUnheard: rounds of an unknown sender count in windows in which the receiver waited for them from beginning to end.
func TestRoundsUnheard(t *testing.T) {
	x := newPathEnds()
	x.unheard, x.off = true, true
	for k, want := range []bool{false, true, true} {
		x.seconds(10, 10)
		if _, n := x.window(); n > 0 != want {
			t.Errorf("window %d: %d missed", k, n)
		}
	}
	x.seconds(5, 10)
	x.unheard, x.deaf = false, true
	x.seconds(5, 10)
	if _, n := x.window(); n > 0 {
		t.Errorf("%d missed by a receiver that ended", n)
	}
}

// FuzzRounds: whatever ends report, losses are bounded by the numbers of rounds, and nothing but totals of both ends is judged.
func FuzzRounds(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 9, 0, 9, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p roundPair
		now, sum := int64(1e18), int64(0)
		for ; len(b) >= 8; b = b[8:] {
			n := decode.ProbeRounds{End: decode.Sender + decode.ProbeEnd(b[0]&1), Count: uint32(b[0] >> 1 & 3), Turn: uint32(b[1]), Next: binary.LittleEndian.Uint32(b[4:])}
			if n.End == decode.Receiver {
				n.First = n.Next - uint32(b[2])
				n.Received = uint32(b[2]) >> (b[0] >> 5)
			}
			now += int64(b[3]) * 1e8
			grown := p.report(uint32(b[0]>>3&1), &n, now)
			if sum += grown; grown > math.MaxInt32 || grown < -math.MaxInt32 {
				t.Fatalf("%d lost at once", grown)
			}
			if p.n > roundsStable+1 || p.found < 0 {
				t.Fatalf("%+v", p)
			}
		}
	})
}

// Totals that leap, and are back at the next report are forged: nothing is lost because of them.
func TestForgedRoundsAccuseNobody(t *testing.T) {
	for _, leap := range []uint32{1, 1000, 1 << 20, 1 << 30, 1<<31 - 100, 1 << 31, 1<<31 + 100, 1<<32 - 500} {
		for _, end := range []decode.ProbeEnd{decode.Sender, decode.Receiver} {
			for _, received := range []uint32{0, leap} {
				x := newPathEnds()
				x.seconds(20, 0)
				x.window()
				forged, node := x.sender, uint32(1)
				if end == decode.Receiver {
					forged, node = x.turned, 2
					forged.End, forged.Count, forged.Turn, forged.Received = end, x.receiver.Count, x.receiver.Turn, forged.Received+received
				}
				forged.Next += leap
				x.report(node, 7, 1, &forged, decode.ProbeCounts{})
				if x.sender.Turn = max(x.sender.Turn, forged.Turn); end == decode.Receiver {
					x.receiver.Turn = forged.Turn
				}
				x.seconds(20, 0)
				if lost, _ := x.window(); lost != 0 {
					t.Errorf("end %d, %d rounds more, %d of them came: %d lost", end, leap, received, lost)
				}
				x.seconds(20, 3)
				if lost, _ := x.window(); lost < 50 || lost > 60 {
					t.Errorf("end %d, %d rounds more, %d of them came: %d lost of 60 that are", end, leap, received, lost)
				}
			}
		}
	}
}
