package shard

import (
	"math"

	"github.com/hopscope/hopscope/decode"
)

// Loss of a path between two agents is the difference between the rounds that its sender has sent and those that its
// receiver got, by the totals of both. It is settled at each report of the receiver. A receiver reports rounds up to the
// latest one of its report before, and rounds of a sender count once they were reported two seconds before. So rounds under
// way are no losses, and of three reports in a row the one with the least loss counts. Totals make up for lost reports.
//
// Totals are compared only while both ends count on. If one of them begins anew, because of another plan, a start, or a
// pause of its machine, the comparison begins anew as well. So only that is lost for which both ends account, and a restart
// costs seconds, not a window.

const (
	roundsAge    = 2e9 // since the report of a sender until a report of the receiver has its rounds, ns
	roundsKept   = 4   // reports of a sender that are kept, one a second
	roundsStable = 3   // reports of a receiver in a row
	roundsBefore = 3e9 // since a sender began until the receiver's reports have no more rounds of before, ns
)

// roundPair compares the totals of the two ends of a path.
type roundPair struct {
	sender, receiver roundEnd
	sent             [roundsKept]sentRounds // the latest first
	before           decode.ProbeRounds     // totals of the receiver when the sender began: while they stay, none of its rounds came

	since int64               // when the comparison began, ns since 1970
	next  uint32              // of the receiver then
	with  comparison          // what is compared
	lost  [roundsStable]int64 // at the latest reports of the receiver, the latest first
	n     int                 // of them, up to roundsStable
	least int64               // loss at the beginning
	found int64               // loss that was found since then
}

// roundEnd is the latest report of an end.
type roundEnd struct {
	decode.ProbeRounds
	epoch  uint32
	at     int64 // when it came, ns since 1970
	since  int64 // when its count began
	silent bool  // it reports counts without rounds, as earlier versions do
}

// sentRounds is a total of a sender.
type sentRounds struct {
	next uint32
	at   int64
}

// comparison identifies the totals that are compared: a change begins a new one.
type comparison struct {
	sender, receiver uint32 // counts
	epoch            uint32
	both, heard      bool // the sender's total is known; rounds of its count came
}

// report takes the totals of an end. It returns by how much the loss of the path grew, or shrank.
func (p *roundPair) report(epoch uint32, n *decode.ProbeRounds, now int64) int64 {
	if now < max(p.sender.at, p.receiver.at)-setBackBy { // its times are of another clock
		*p = roundPair{}
	}
	end := &p.receiver
	if n.End == decode.Sender {
		end = &p.sender
	}
	anew := end.End == decode.NoEnd || end.Count != n.Count || end.epoch != epoch
	if !anew && end.shrinks(n) {
		anew, p.with = true, comparison{}
	}
	if anew {
		*end = roundEnd{epoch: epoch, since: now}
		if n.End == decode.Sender {
			p.sent, p.before = [roundsKept]sentRounds{}, p.receiver.ProbeRounds
		}
	} else if end.at, end.silent = now, false; int32(n.Turn-end.Turn) <= 0 {
		return 0 // overtaken, or twice
	}
	end.ProbeRounds, end.at = *n, now
	if n.End == decode.Sender {
		copy(p.sent[1:], p.sent[:])
		p.sent[0] = sentRounds{n.Next, now}
		return 0
	}
	if p.before.Count == n.Count && now-p.sender.since < roundsBefore && !p.unchanged() { // these may be rounds of either count
		p.before, p.with = *n, comparison{}
	}
	return min(max(p.settle(now), -math.MaxInt32), math.MaxInt32)
}

// shrinks reports whether a later report of an end has less than the latest one, which no agent sends: one of the two is forged.
func (e *roundEnd) shrinks(n *decode.ProbeRounds) bool {
	return int32(n.Turn-e.Turn) > 0 && (int32(n.Next-e.Next) < 0 || int32(n.Received-e.Received) < 0)
}

// settle compares the totals at a report of the receiver.
func (p *roundPair) settle(now int64) int64 {
	r := &p.receiver
	with := comparison{receiver: r.Count, epoch: r.epoch}
	if s := &p.sender; s.End == decode.Sender && s.epoch == r.epoch {
		with.both, with.sender, with.heard = true, s.Count, r.Received > 0 && !p.unchanged()
	}
	if with != p.with || now < p.since {
		p.with, p.since, p.next, p.n, p.found = with, now, r.Next, 0, 0
	}
	sent, known := p.sentBy(now - roundsAge)
	if with.both && !known || !with.both && r.Next == p.next { // alone the receiver knows of rounds before the next one that comes
		return 0
	}
	var lost int64
	switch {
	case with.both && !with.heard:
		lost = int64(sent)
	case r.Received > 0:
		if !with.both || int32(r.Next-sent) > 0 {
			sent = r.Next
		}
		lost = int64(int32(sent - r.First - r.Received))
	}
	copy(p.lost[1:], p.lost[:])
	p.lost[0] = lost
	if p.n++; p.n < roundsStable {
		return 0
	}
	for _, n := range p.lost[1:] {
		lost = min(lost, n)
	}
	if p.n == roundsStable || lost < p.least {
		p.least = lost
	}
	p.n = roundsStable + 1
	grown := lost - p.least - p.found
	p.found += grown
	return grown
}

// unchanged reports whether the receiver got nothing since the sender began.
func (p *roundPair) unchanged() bool {
	a, b := &p.receiver.ProbeRounds, &p.before
	return a.Count == b.Count && a.First == b.First && a.Next == b.Next && a.Received == b.Received
}

// sentBy returns the sender's total of a time, if it was reported while the totals were compared.
func (p *roundPair) sentBy(at int64) (next uint32, known bool) {
	for _, s := range p.sent {
		if s.at <= at {
			return s.next, s.at >= p.since && s.at > 0
		}
	}
	return 0, false
}

// replaces reports whether the loss of a path is that of its totals, whatever the counts of a receiver say. Otherwise the
// agents, or one of them, are of an earlier version.
func (p *roundPair) replaces(n *decode.ProbeCounts, now int64) bool {
	if n.Sent > 0 && n.Received|n.Missed|n.Late == 0 { // a sender's
		p.sender.silent = p.sender.at != now
		return false
	}
	p.receiver.silent = p.receiver.at != now
	return !p.receiver.silent && !p.sender.silent
}

// throughout reports whether a receiver waited for rounds from a time to another.
func (p *roundPair) throughout(from, to int64) bool {
	return p.receiver.End != decode.NoEnd && p.receiver.since <= from && p.receiver.at >= to
}
