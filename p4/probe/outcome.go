package probe

import (
	"hash/crc32"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// Outcomes of the paths of a plan, as agents report them to collectors. Of a probe that returns to its agent, that agent
// knows all. Of another one each agent reports what it knows, under the same path:
//
//   - The sender reports the rounds that its port took, at once. It leaves out those of the first [settling] of a plan,
//     and as many after rounds that it did not send.
//   - The receiver reports what came, [lag] turns later, so that a round is reported as sent before it is as received. It
//     reports the rounds lost between others, which are certain, as lost forward too. Rounds that are due by the schedule
//     and did not come are missed. Whether they were sent is up to the sender's report.
//
// Beside these counts, each end of a path between two agents reports the totals of its rounds ([decode.ProbeRounds]). A
// collector that has the totals of both ends takes the difference for lost, and needs nothing else. Counts are for series,
// and for collectors of earlier versions, which take no more missed rounds for lost than were sent and not received in the
// same time.
//
// A sender of which nothing came yet has the address 0.0.0.0; its path is only reported if no other one that comes has
// the same number. Delays are those of one clock, and so of probes that return to their agent.

// settling and two intervals are the time from the adoption of a plan, or from a pause, for which rounds are not reported
// as sent. It is longer than the rounds of the pause may wait for their receiver's report.
const settling = 6 * int64(Grace)

// lag is the number of turns that a report about what came waits. Rounds that come behind later ones in that time are not lost.
const lag = 2

// pathHashed marks numbers of paths that are hashes of ids.
const pathHashed = 1 << 31

// pathNumbers returns a number for each probe of a plan, by which sender and receiver name its path. It is the decimal
// number at the end of the id. It is a hash of the id if that is not below 65536, or another probe between the same
// agents has the same.
func pathNumbers(p *Plan) []uint32 {
	type name struct {
		from, to string
		number   uint32
	}
	list, seen := make([]uint32, len(p.Probes)), make(map[name]int, len(p.Probes))
	names := make([]name, len(p.Probes))
	for k := range p.Probes {
		x := &p.Probes[k]
		n, err := strconv.ParseUint(x.ID[len(strings.TrimRight(x.ID, "0123456789")):], 10, 16)
		if err != nil {
			n = math.MaxUint32
		}
		list[k], names[k] = uint32(n), name{x.Agent, x.Collector, uint32(n)}
		seen[names[k]]++
	}
	for k := range list {
		if list[k] == math.MaxUint32 || seen[names[k]] > 1 {
			list[k] = pathHashed | crc32.Checksum([]byte(p.Probes[k].ID), castagnoli)
		}
	}
	return list
}

// outcome is what is reported of an expected probe.
type outcome struct {
	of    *trackState // of the state, and of its beginning, are the counts below
	begun uint32

	received, twice, corrupt, reordered uint32
	sent                                uint32 // of an own one
	lost, missed                        int64  // between rounds that came, and behind them

	delays []decode.DelayCount // of an own one, since the last turn, in ascending order
	wait   [lag]decode.ProbeCounts
}

// outbound is a probe that the agent sends to another one.
type outbound struct {
	template int
	path     uint32
	sent     uint32 // rounds that are reported
	unsent   uint32 // rounds that were not sent
	since    int64  // when it began, or a pause ended, ns by the clock of the track
}

// outbounds are the probes of a work that come to other agents than that of a name.
func outbounds(w *Work, name string, paths []uint32) (list []outbound) {
	for k := range w.Templates {
		x := &w.Plan.Probes[w.Templates[k].Probe]
		if x.Collector != name && (x.Collector != "" || x.To.IsValid()) {
			list = append(list, outbound{template: k, path: paths[w.Templates[k].Probe]})
		}
	}
	return list
}

// Suspended notes that the machine may have stood still since the last call of [Track.Outcomes]: its clock was set, or went on without
// that of the track. So rounds were not sent, maybe, that others expect.
func (t *Track) Suspended() {
	if t.Plan != nil {
		t.Plan.reported = t.now - 3*int64(Grace)
	}
}

// rounds are the totals of an expected probe of another agent: those of the plan in force that came, up to the latest one of
// the last turn. So no round is among them that a later one overtook within a turn.
func (t *Track) rounds(e *expected) decode.ProbeRounds {
	n := decode.ProbeRounds{End: decode.Receiver, Count: t.Count, Turn: t.turns}
	if x := e.state; x != nil {
		n.Count += x.place*0x9e3779b1 + x.begun*0x85ebca6b + x.odds*0xc2b2ae35 // each beginning is another count, and what may be one
		if x.epoch == t.Plan.Epoch {
			n.First, n.Next, n.Received = x.first, x.turned+1, x.settled+x.crossed
		}
	}
	return n
}

// Outcomes calls each with the probe of a path, the beginning of its packets, and what became of it since the last call.
// The source is 0.0.0.0 where the sender is not known. Call it after [Track.Turn]. The counts are valid for the duration
// of the call.
func (t *Track) Outcomes(ends *Ends, each func(k TrackKey, packet []byte, c *decode.ProbeCounts)) {
	p := t.Plan
	if p == nil {
		return
	}
	paused := t.now-p.reported > 2*int64(Grace) // so is the sender, maybe
	p.reported = t.now
	if t.turns++; paused || t.paused { // probes of others may have come meanwhile that were not read, up to this turn
		t.Count++
	}
	t.paused = paused
	for k := range p.outbound {
		o := &p.outbound[k]
		x, next := &p.work.Templates[o.template], p.work.Next[o.template].Load()
		if unsent := p.work.Failed[o.template].Load() + p.work.Skipped[o.template].Load(); paused || unsent != o.unsent {
			o.since, o.unsent = t.now, unsent
		}
		c := decode.ProbeCounts{Path: o.path, Epoch: p.Epoch, Sent: next - o.sent}
		o.sent = next
		q := &p.plan.Probes[x.Probe]
		if t.now-o.since <= settling+2*int64(q.Interval) {
			c.Sent = 0
		}
		c.Rounds = decode.ProbeRounds{End: decode.Sender, Count: t.Count, Turn: t.turns, Next: next}
		to := ends.To
		if q.To.IsValid() {
			to = q.To.Unmap()
		}
		from := TrackKey{ends.From.As4(), x.Number}
		each(from, from.head(to, ends.Mark), &c)
	}
	for k := range p.list {
		e := &p.list[k]
		rounds := t.rounds(e) // up to the last turn, which is over with the outcome
		c := e.outcome.later(t.outcome(e))
		if unknown := e.shared && e.key.Source == [4]byte{}; unknown || !e.known() || e.own && !counted(&c) {
			continue
		}
		if !e.own {
			c.Rounds = rounds
		}
		c.Path, c.Epoch = e.path, p.Epoch
		to := netip.AddrFrom4(p.to)
		if q := p.plan.Probes[e.probe].To; q.IsValid() {
			to = q.Unmap()
		}
		each(e.key, e.key.head(to, ends.Mark), &c)
	}
}

// counted reports whether anything was counted, delays aside.
func counted(c *decode.ProbeCounts) bool {
	return c.Sent|c.Received|c.Missed|c.Late|c.Twice|c.Corrupt|c.Reordered|uint32(c.Forward|c.Back) != 0
}

// head is the beginning of a packet of a probe at its end, without telemetry. It has the flow of the probe.
func (k TrackKey) head(to netip.Addr, mark uint8) []byte {
	ip := packet.IPv4{TOS: mark << 2, TTL: ttl, Proto: packet.ProtoUDP, DontFragment: true, Src: k.Source, Dst: to.As4()}
	b := packet.AppendIPv4(make([]byte, 0, packet.IPv4Len+packet.UDPLen), &ip, packet.UDPLen)
	return packet.AppendUDP(b, FirstPort|uint16(k.Number)&(1<<portBits-1), OriginalPort, 0)
}

// outcome returns what became of an expected probe since the last call.
func (t *Track) outcome(e *expected) (c decode.ProbeCounts) {
	o, x := &e.outcome, e.state
	if !e.own && x != nil && !e.bound {
		return c // it may be another probe that came
	}
	if x != nil && x.epoch != t.Plan.Epoch { // rounds of other plans have other paths
		if o.of == x && o.begun != x.begun { // what was reported as lost stays so, and what waits may be late: it is not followed any more
			for k := range o.wait {
				o.wait[k].Missed, o.wait[k].Forward = 0, 0
			}
			o.begun, o.lost, o.missed = x.begun, 0, 0
		}
		x = nil
	}
	var lost int64 // between rounds that came
	missed := t.missed(e)
	if x != nil {
		if o.of != x || o.begun != x.begun { // rounds before the first that came may have been sent by an agent that ended
			first := o.of == nil
			*o = outcome{of: x, begun: x.begun, sent: o.sent, lost: o.lost, missed: o.missed, delays: o.delays, wait: o.wait}
			if !e.own {
				o.lost, o.missed = 0, 0
			}
			if first { // what was missed by then came as another probe, maybe
				o.wait = [lag]decode.ProbeCounts{}
			}
		}
		c.Received, c.Corrupt = since(x.received-min(x.corrupt, x.received), &o.received), since(x.corrupt, &o.corrupt)
		c.Twice, c.Reordered = since(x.twice, &o.twice), since(x.reordered, &o.reordered)
		lost = int64(x.seq-x.first) + 1 - int64(x.received)
	}
	if e.own {
		c.Sent = since(e.late, &o.sent)
		if x != nil {
			lost += int64(x.first)
		}
	}
	more := lost + missed - o.lost - o.missed
	c.Forward = int32(lost - o.lost)
	if x != nil { // rounds that came behind later ones wait as lost, and others may be now
		n := o.found(x.crossed)
		x.turned, x.crossed, x.settled = x.seq, 0, x.received
		more += int64(n)
		c.Forward += int32(n)
	}
	c.Missed, c.Late = uint32(max(more, 0)), uint32(max(-more, 0))
	if e.own {
		c.Forward = int32(more)
	}
	o.lost, o.missed = lost, missed
	c.Delays, o.delays = o.delays, nil
	return c
}

// later returns the counts that have waited long enough, and lets others wait. Rounds that were missed are none if they
// come meanwhile, behind later ones, or it shows that their sender paused.
func (o *outcome) later(c decode.ProbeCounts) decode.ProbeCounts {
	c.Late = o.deduct(c.Late)
	for k := range o.wait {
		n := max(min(-c.Forward, o.wait[k].Forward), 0)
		c.Forward += n
		o.wait[k].Forward -= n
	}
	due := o.wait[0]
	copy(o.wait[:], o.wait[1:])
	o.wait[lag-1] = c
	return due
}

// found subtracts rounds that came from the lost ones that wait, the latest first, and returns how many are among these.
func (o *outcome) found(rounds uint32) (sum uint32) {
	for k := lag - 1; k >= 0; k-- {
		w := &o.wait[k]
		n := min(rounds-sum, w.Missed, uint32(max(w.Forward, 0)))
		w.Missed, w.Forward, sum = w.Missed-n, w.Forward-int32(n), sum+n
	}
	return sum
}

// deduct subtracts missed rounds from the counts that wait, and returns how many are not among these.
func (o *outcome) deduct(rounds uint32) uint32 {
	for k := range o.wait {
		n := min(rounds, o.wait[k].Missed)
		rounds -= n
		o.wait[k].Missed -= n
	}
	return rounds
}

// since is how much a count grew. Where it shrank, so much of its next growth is not counted.
func since(now uint32, was *uint32) uint32 {
	n := now - *was
	if int32(n) <= 0 {
		return 0
	}
	*was = now
	return n
}

// addDelay counts the delay of a round.
func (o *outcome) addDelay(ns int64) {
	code := decode.DelayCode(uint64(max(ns, 0)))
	i, ok := slices.BinarySearchFunc(o.delays, code, func(d decode.DelayCount, code uint16) int { return int(d.Code) - int(code) })
	if !ok {
		o.delays = slices.Insert(o.delays, i, decode.DelayCount{Code: code})
	}
	if o.delays[i].Count < math.MaxUint16 {
		o.delays[i].Count++
	}
}
