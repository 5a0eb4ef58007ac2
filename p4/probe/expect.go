package probe

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
)

// Grace is the time that a round may be under way before it is taken for lost.
const Grace = time.Second

// Expectations are the probes of a plan that come to an agent.
type Expectations struct {
	list   []expected
	Epoch  uint32 // of the plan
	Latest uint32 // that others can have in force, as far as it is known here
	plan   *Plan
	work   *Work   // the agent's sends of it
	to     [4]byte // address of the agent
	own    map[TrackKey]*expected
	byID   map[string]*expected
	agents map[[4]byte]string // by the addresses that the plan has of them; "" where two have the same

	longest   int64 // interval, ns
	unplanned int   // probes that are followed, and that the plan does not have

	unsent []uint32 // by template: rounds refused by the card that were reported to collectors

	outbound []outbound
	reported int64 // when outcomes were reported last, ns by the clock of the track
}

// expected is a probe of the plan that comes to the agent.
type expected struct {
	id              string
	probe           int   // of the plan
	interval, phase int64 // ns
	hops            int
	own             bool // the agent sends it, so that its number and its rounds are known
	template        int  // of an own one

	since, ran int64       // when it began to be expected, by both clocks of the track
	key        TrackKey    // of an own one, and of state
	state      *trackState // state of arrivals; nil before the first
	gaps       int64       // rounds lost between those that came, and before
	counted    int64       // rounds missed since the last arrival that are counted elsewhere
	sent, late uint32      // of an own one: rounds sent, at the last turn and at the one before
	missing    int64       // rounds missed since the last arrival, at the last tick
	reported   int64       // rounds that were reported to collectors
	silent     bool

	failed    uint32 // of an own one: rounds that the card did not take or that were left out, at the last turn
	unsent    int64  // of these, those since the last arrival
	arrivedAt int64  // when that was, as state.ran

	path    uint32   // number of its path at collectors
	ports   uint32   // of its route
	shared  bool     // another one that comes has the same number of its path
	agent   string   // that sends it
	rivals  []string // ids of others of the plan that a probe that came may be instead
	bound   bool     // it is sure that the probe of state is this one
	outcome outcome
}

// NewExpectations finds the probes of a plan that come to the agent of a name, which has an address and sends its own by w.
func NewExpectations(p *Plan, name string, source [4]byte, w *Work) *Expectations {
	x := &Expectations{Epoch: p.Epoch, Latest: p.Epoch, plan: p, work: w, to: source, own: map[TrackKey]*expected{}, byID: map[string]*expected{}, agents: agentsOf(p), unsent: make([]uint32, len(w.Templates))}
	paths := pathNumbers(p)
	x.outbound = outbounds(w, name, paths)
	templates := make(map[int]int, len(w.Templates))
	for k := range w.Templates {
		templates[w.Templates[k].Probe] = k
	}
	for k := range p.Probes {
		q := &p.Probes[k]
		if q.Collector != name && !(q.Collector == "" && q.Agent == name && !q.To.IsValid()) {
			continue
		}
		e := expected{id: q.ID, probe: k, interval: int64(q.Interval), phase: int64(q.Phase), hops: len(q.Route), own: q.Agent == name, agent: q.Agent, path: paths[k], ports: portsOf(q.Route, func(port *int) int { return *port })}
		if e.own {
			e.template = templates[k]
			e.key = TrackKey{source, w.Templates[e.template].Number}
		}
		x.longest = max(x.longest, e.interval)
		x.list = append(x.list, e)
	}
	first := make(map[uint32]*expected, len(x.list))
	for k := range x.list {
		e := &x.list[k]
		x.byID[e.id] = e
		if e.own {
			x.own[e.key] = e
		}
		if o := first[e.path]; o != nil {
			o.shared, e.shared = true, true
		}
		first[e.path] = e
	}
	return x
}

// agentsOf returns the agents by the addresses to which a plan sends probes for them.
func agentsOf(p *Plan) map[[4]byte]string {
	agents := map[[4]byte]string{}
	for k := range p.Probes {
		q := &p.Probes[k]
		if to := q.To.Unmap(); to.Is4() && q.Collector != "" {
			if name, known := agents[to.As4()]; known && name != q.Collector {
				agents[to.As4()] = ""
			} else {
				agents[to.As4()] = q.Collector
			}
		}
	}
	return agents
}

// sentSoFar reports whether the agent can have sent a round of an own probe. The sender notes a round when the card has taken it, so that one
// can come before.
func (p *Expectations) sentSoFar(e *expected, a *Arrival) bool {
	return a.Epoch == p.Epoch && a.Seq <= p.work.Next[e.template].Load()
}

// Expect adopts the probes of a plan. The state of those that stay continues, by their ids, and lost rounds stay lost.
func (t *Track) Expect(p *Expectations) {
	old := map[string]*expected{}
	if t.Plan != nil {
		for k := range t.Plan.list {
			e := &t.Plan.list[k]
			t.kept += e.gaps + t.missed(e)
			t.setUnsent(e)
			old[e.id] = e
		}
	}
	for _, x := range t.last {
		x.due = nil
	}
	t.Plan, p.reported = p, t.now
	t.Count++
	for k := range p.outbound {
		p.outbound[k].since = t.now
	}
	for k := range p.list {
		e := &p.list[k]
		e.since, e.ran = t.now, t.ran
		o := old[e.id]
		if o == nil || o.own != e.own || e.own && o.key != e.key {
			continue
		}
		e.ran, e.silent, e.state, e.key, e.rivals, e.bound = o.ran, o.silent, o.state, o.key, o.rivals, o.bound
		e.unsent, e.arrivedAt = o.unsent, o.arrivedAt
		if e.state != nil {
			e.state.due = e
		}
		e.counted = t.scheduled(e)
	}
	for k, x := range t.last {
		if e := p.own[k]; x.due == nil && e != nil && e.state == nil {
			x.due, e.state = e, x
		}
		if x.due == nil {
			p.unplanned++
		}
	}
}

// match returns the place of a probe of another agent that arrives for the first time, or nil. Its sender chooses its
// number, so match compares its length, its ports and the time of its start. Candidates are probes that never arrived, or not for
// long. It is sure that best is the probe if the arrival is by the plan, of its length and ports, and at the time of no
// other probe. If the second best is not much worse, it is not sure which of the two the probe is. A probe from the address
// that the plan has for an agent is none of another agent.
func (t *Track) match(a *Arrival) (best *expected, sure bool) {
	var second *expected
	off, next, taken := int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64)
	from := t.Plan.agents[a.Source]
	like := func(e *expected) bool { return e.like(a) && (from == "" || from == e.agent) }
	for k := range t.Plan.list {
		e := &t.Plan.list[k]
		if e.own {
			continue
		}
		d := (a.Sent - e.phase) % e.interval
		if d < 0 {
			d += e.interval
		}
		d = min(d, e.interval-d)
		like := like(e)
		if !like {
			d += int64(maxInterval)
		}
		switch {
		case e.state != nil && (t.scheduled(e) < 3 || e.bound && !like):
			taken = min(taken, d)
		case d < off:
			best, second, off, next = e, best, d, off
		case d < next:
			second, next = e, d
		}
	}
	if best == nil || a.Epoch != t.Plan.Epoch || !like(best) {
		return best, false
	}
	if second != nil && next/4 <= off {
		best.rival(second)
		second.rival(best)
	}
	return best, taken > off
}

// known reports whether it is known what comes of a probe.
func (e *expected) known() bool { return e.own || len(e.rivals) == 0 && (e.state == nil || e.bound) }

// rival notes that a probe that came may be either of two.
func (e *expected) rival(o *expected) {
	if !slices.Contains(e.rivals, o.id) {
		e.rivals = append(e.rivals, o.id)
	}
}

// resolve forgets rivals once it is known which is which: both come, each nearer to its own place than to the other one. So is one
// that the plan does not have any more.
func (t *Track) resolve(e *expected) {
	comes := func(e *expected) bool { return e.bound && e.state != nil && t.scheduled(e) < 3 }
	e.rivals = slices.DeleteFunc(e.rivals, func(id string) bool {
		o := t.Plan.byID[id]
		return o == nil || o.own || comes(e) && comes(o)
	})
}

// like reports whether an arrival has the length and the ports of a probe.
func (e *expected) like(a *Arrival) bool {
	return a.Hops == e.hops && (a.Ports == 0 || a.Ports == e.ports)
}

// assign gives an arrival of another agent's probe its place in the plan, if it has one. It counts the rounds before.
func (t *Track) assign(k TrackKey, a *Arrival) (e *expected) {
	e, sure := t.match(a)
	if e == nil {
		return nil
	}
	if e.state != nil { // of which nothing came for long
		t.over(e.state)
		delete(t.last, e.key)
	} else {
		e.gaps += max(0, min(int64(a.Seq), (t.now-e.since)/e.interval)-e.counted)
	}
	e.key, e.bound, e.counted = k, sure, 0
	return e
}

// reassign gives a followed probe its place anew, if it is not sure that it has the right one: that of another plan may
// be another probe's.
func (t *Track) reassign(k TrackKey, x *trackState, a *Arrival) {
	old := x.due
	if t.Plan == nil || a.Epoch != t.Plan.Epoch || t.now-x.tried < int64(Grace) || old != nil && (old.own || old.bound) || old == nil && t.Plan.own[k] != nil {
		return
	}
	x.tried = t.now
	if old != nil {
		old.state, old.key, old.ran, old.counted = nil, TrackKey{}, t.ran, 0
		t.Plan.unplanned++
	}
	x.due = t.assign(k, a)
	if e := x.due; e != nil {
		e.state = x
		t.Plan.unplanned--
	}
}

// portsOf returns a number that stands for the ports of hops, which is not 0.
func portsOf[T any](hops []T, port func(*T) int) uint32 {
	n := uint32(1)
	for k := range hops {
		n = n*16777619 ^ uint32(port(&hops[k])) // FNV
	}
	return max(n, 1)
}

// scheduled is how many rounds of a probe the schedule had since the last one came, without those that may be under way.
func (t *Track) scheduled(e *expected) int64 {
	from := e.ran
	if e.state != nil {
		from = max(from, e.state.ran)
	}
	return max(0, (t.ran-from-int64(Grace))/e.interval)
}

// missed is how many rounds of a probe are lost behind the last one that came. For its own probes the agent knows how
// many were sent. A round that the card refused does not count.
func (t *Track) missed(e *expected) int64 {
	if !e.own {
		return max(0, t.scheduled(e)-e.counted)
	}
	n := int64(e.late)
	if x := e.state; x != nil && x.epoch == t.Plan.Epoch {
		n -= int64(x.seq) + 1
	}
	return max(0, n)
}

// setUnsent counts the rounds of an own probe that the card did not take, or the sender left out, since the last one came.
func (t *Track) setUnsent(e *expected) {
	if !e.own {
		return
	}
	if e.state != nil && e.state.ran != e.arrivedAt {
		e.arrivedAt, e.unsent = e.state.ran, 0
	}
	failed := t.Plan.work.Failed[e.template].Load() + t.Plan.work.Skipped[e.template].Load()
	e.unsent += int64(failed - e.failed)
	e.failed = failed
}

// over counts the missed rounds of a beginning that is over, and returns them.
func (t *Track) over(x *trackState) (missed int64) {
	if e := x.due; e != nil && !e.own {
		missed = t.missed(e)
		e.gaps += missed
		missed += e.counted
	}
	return missed
}

// Loss counts the rounds and probes that did not come to an agent.
type Loss struct {
	Lost    int64 // rounds that did not come; one that comes late is taken off again
	Awaited int   // probes of the plan that come here
	Silent  int   // of these, those of which the last two rounds did not come, or more
	Unsure  int   // of these, those that cannot be distinguished from another one
	First   string
	rounds  int64 // of the silent ones, since their last one
}

// stall is the longest time of a round of the receiving loop. Beyond it, the loop itself may have missed probes.
const stall = int64(time.Second) / 2

// Tick is called at a time, ns by a clock that is never set, before what came by then is followed.
func (t *Track) Tick(now int64) {
	t.ran += min(now-t.now, stall)
	t.now = now
}

// Turn counts what is lost, once in a [Grace].
func (t *Track) Turn() (l Loss) {
	total := t.gaps + t.kept
	if p := t.Plan; p != nil {
		for k := range p.list {
			e := &p.list[k]
			if e.own {
				e.late, e.sent = e.sent, p.work.Next[e.template].Load()
			}
			if t.resolve(e); !e.known() {
				l.Unsure++
			}
			e.missing = t.missed(e)
			total += e.gaps + e.missing
			t.setUnsent(e)
			n := t.scheduled(e) - e.unsent
			if e.silent = n >= 2; e.silent {
				if l.Silent++; l.Silent == 1 {
					l.First = e.id
				}
				l.rounds += n
			}
		}
		l.Awaited = len(p.list)
		t.forget()
	}
	t.excuse(total)
	l.Lost = max(0, total-t.excused)
	return l
}

// excuse counts corrupt frames without a sender as rounds that are missing now. They have no later use.
func (t *Track) excuse(total int64) {
	n := min(max(0, total-t.raw), t.young+t.old)
	t.raw, t.excused, t.unreported = total, t.excused+n, t.unreported+n
	t.old -= n
	if t.old < 0 {
		t.young, t.old = t.young+t.old, 0
	}
	life := 2 * int64(Grace)
	if t.Plan != nil {
		life += 2 * t.Plan.longest
	}
	if t.now-t.turned > life {
		t.turned, t.old, t.young = t.now, t.young, 0
	}
}

// MostReports bounds the reports about rounds of a probe that did not come, in a turn.
const MostReports = 64

// Report returns the lost rounds that collectors have not got yet, with the packet that did not come.
func (t *Track) Report(mark uint8, each func(k TrackKey, packet []byte)) {
	if t.Plan == nil {
		return
	}
	for k := range t.Plan.list {
		e := &t.Plan.list[k]
		n := e.gaps + e.missing - e.reported
		if n <= 0 {
			continue
		}
		e.reported += n
		excused := min(n, t.unreported)
		t.unreported -= excused
		if n -= excused; n == 0 {
			continue
		}
		packet, err := t.Plan.packet(e, mark)
		for range min(n, MostReports) {
			if err == nil { // the plan was checked
				each(e.key, packet)
			}
		}
	}
}

// ReportUnsent returns the rounds refused by the card that collectors have not got yet, with the packet that was not
// sent.
func (t *Track) ReportUnsent(ends *Ends, each func(k TrackKey, packet []byte)) {
	if t.Plan == nil {
		return
	}
	for k := range t.Plan.unsent {
		x, failed := &t.Plan.work.Templates[k], t.Plan.work.Failed[k].Load()
		n := failed - t.Plan.unsent[k]
		if n == 0 {
			continue
		}
		t.Plan.unsent[k] = failed
		key := TrackKey{ends.From.As4(), x.Number}
		packet, err := t.Plan.packet(&expected{probe: x.Probe, key: key}, ends.Mark)
		for range min(n, MostReports) {
			if err == nil { // the plan was checked
				each(key, packet)
			}
		}
	}
}

// packet is one of a probe that did not come, as it was sent. Of a sender of which nothing ever came the address is not known, and 0.0.0.0.
func (p *Expectations) packet(e *expected, mark uint8) ([]byte, error) {
	ends := Ends{From: netip.AddrFrom4(e.key.Source), To: netip.AddrFrom4(p.to), Mark: mark}
	q := &p.plan.Probes[e.probe]
	if q.To.IsValid() {
		ends.To = q.To.Unmap()
	}
	x, err := NewTemplate(p.plan, q, e.key.Number, &ends)
	if err != nil {
		return nil, err
	}
	return x.frame[len(x.frame)-PacketLen:], nil
}

// forget drops probes that no plan has and of which nothing came for a while.
func (t *Track) forget() {
	for k, x := range t.last {
		if x.due == nil && t.now-x.heard > idleUnplanned {
			delete(t.last, k)
			t.Plan.unplanned--
		}
	}
}

// Text names the probes that do not come, or is "".
func (l *Loss) Text() string {
	if l.Silent == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d probes do not come, such as %s: %d rounds", l.Silent, l.Awaited, l.First, l.rounds)
}
