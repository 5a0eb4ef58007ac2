package loop

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
)

// Settle is the least time between two surveys of rounds. A probe that was sent before one of them has arrived by the
// next, or is lost.
const Settle = time.Second

// Answer is an agent's answer in a survey of rounds.
type Answer struct {
	agent           string
	Life            uint64 // another one for each connection, or start, of the agent
	Asked, Answered int64  // ns, by a clock that does not go back
	Rounds          *probe.Rounds
	Wrong           error // why there are none
}

// ProbeRounds are rounds of a probe whose fate is known.
type ProbeRounds struct {
	Probe      int32 // by its place in the network
	Sent, Lost uint64
	Transit    float64 // mean of the times in switches of those that came since the last call, ns; 0 if they are not known
}

// roundsStatus counts what surveys brought.
type roundsStatus struct {
	Surveys  uint64 `json:"surveys"`
	Sent     uint64 `json:"sent"` // rounds whose fate is known
	Lost     uint64 `json:"lost"`
	Refused  uint64 `json:"answers_refused"`   // answers of agents that cannot be
	Why      string `json:"refused,omitempty"` // the last of them
	Probes   int    `json:"probes"`            // whose rounds the last survey could follow
	Agents   int    `json:"agents"`            // that answered it
	Declined uint64 `json:"begun_anew"`        // times that the rounds of a probe could not be followed any further

	Unsent  uint64 `json:"unsent"`                // rounds that the agents' own ports did not take; they are not lost in the network
	Unable  int    `json:"agents_unable"`         // agents whose ports did not take some since the survey before
	Refuses string `json:"not_sending,omitempty"` // one of these, in a sentence
}

// Rounds finds lost rounds of probes from the counts of agents. Surveys come in, one after the other, and rounds of
// known fate go out. It reads no clock, neither its own nor that of agents.
//
// In a survey every agent is asked once; the next one begins [Settle] after the last answer. So a round of one survey
// was sent long before the receiver counts in the next. All rounds of a probe up to the latest that came are settled.
// So are those up to the latest that the sender reported in the survey before. A settled round that has not arrived by
// the next survey either is lost.
//
// Counts of different lives, epochs or numbers are never compared. The probe begins anew where one of these changes,
// where the receiver missed frames of its own, or where its counts contradict those of the sender. The fate of rounds
// before that stays unknown. A probe in the plan and reported by both ends, of which no round ever came, is lost.
type Rounds struct {
	mu     sync.Mutex // all of it
	probes []followedProbe
	agents map[string]*roundsAgent
	due    bool // a survey has come since Take
	status roundsStatus
}

// roundsAgent is an agent that reports rounds.
type roundsAgent struct {
	life    uint64
	refused uint64 // answers
	asked   int64  // the last answer's
	epoch   uint32
	unable  unsent                       // since the answer before
	sent    map[string]*probe.SentRounds // of the last answer
	arrived map[receivedKey]*probe.ReceivedRounds
	before  map[receivedKey]*probe.ReceivedRounds // of the answer before
	answer  *probe.Rounds                         // in this survey; nil if it did not, or its answer was refused
}

// unsent are rounds that an agent's own port did not take, and the probes that they are of.
type unsent struct {
	rounds uint64
	probes int
}

type receivedKey struct {
	source [4]byte
	number uint32
}

// followedProbe is a probe of the network, and what became of its rounds.
type followedProbe struct {
	id, from, to string
	route        []int
	interval     time.Duration
	state        roundsState
	sent, lost   uint64 // since Take
	transit      uint64 // times in switches since then, ns
	transits     uint64 // rounds that these are of
}

// roundsKey must stay the same while rounds are compared.
type roundsKey struct {
	sender, receiver [2]uint64 // life, and answers refused
	epoch, number    uint32
	source           [4]byte
	spoiled          uint64
}

// mostFirst is more rounds than a plan has by the survey that sees it first.
const mostFirst = 1 << 16

// continues reports whether only the plan differs: both ends have counted all the time, and the plan's rounds begin at
// 0.
func (k *roundsKey) continues(now *roundsKey) bool {
	was := *k
	was.epoch, was.number = now.epoch, now.number
	return was == *now && k.epoch != now.epoch
}

// roundsState is the knowledge about a probe. Numbers of rounds, and counts of them, wrap around.
type roundsState struct {
	key      roundsKey
	begun    bool
	present  bool    // the receiver has a round of the epoch
	counts   uint32  // of the receiver: times that it began
	based    bool    // base is known
	base     uint32  // round from which on those are missed that did not come
	next     uint32  // of the sender, in the survey before
	heard    uint32  // of the receiver: the one behind the latest that came, in the survey before
	settled  uint32  // all rounds below are, by the survey before
	later    pending // of a probe with many rounds between two surveys
	reported pending // already returned
}

// pending is how many rounds, from base on and below to, did not come.
type pending struct {
	to, missing uint32
	known       bool
}

// NewRounds follows the probes of a network, as they are sent. A probe that cannot be sent is not followed.
func NewRounds(list []planner.Probe, p *Probing) *Rounds {
	r := &Rounds{agents: map[string]*roundsAgent{}}
	r.probes = trackProbes(list, p)
	return r
}

func trackProbes(list []planner.Probe, p *Probing) []followedProbe {
	probes := make([]followedProbe, len(list))
	for k := range list {
		q, err := probe.New(&list[k], p.slot(list, k))
		if err != nil {
			continue // without an id no agent reports it
		}
		probes[k] = followedProbe{id: q.ID, from: q.Agent, to: q.Collector, route: q.Route, interval: q.Interval}
	}
	return probes
}

// Adopt takes over another network. Probes that both networks have, and send the same way, are followed further.
func (r *Rounds) Adopt(next *Rounds) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := make(map[string]*followedProbe, len(r.probes))
	for k := range r.probes {
		was[r.probes[k].id] = &r.probes[k]
	}
	probes := slices.Clone(next.probes)
	for k := range probes {
		p := &probes[k]
		if old := was[p.id]; p.id != "" && old != nil && old.from == p.from && old.to == p.to && old.interval == p.interval && slices.Equal(old.route, p.route) {
			*p = *old
		}
	}
	r.probes = probes
}

// Status returns the results of surveys.
func (r *Rounds) Status() roundsStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Drain returns the rounds whose fate has become known since the last call, by probe; ok is false if no survey was taken since.
func (r *Rounds) Drain() (list []ProbeRounds, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.due {
		return nil, false
	}
	r.due = false
	for k := range r.probes {
		if p := &r.probes[k]; p.sent > 0 || p.transits > 0 {
			list = append(list, ProbeRounds{int32(k), p.sent, p.lost, float64(p.transit) / float64(max(1, p.transits))})
			p.sent, p.lost, p.transit, p.transits = 0, 0, 0, 0
		}
	}
	return list, true
}

// Survey takes the answers of all agents that were asked once. An answer that cannot be is refused whole, and the reasons are given.
func (r *Rounds) Survey(list []Answer) (refused []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = true
	r.status.Surveys++
	r.status.Agents, r.status.Probes = 0, 0
	r.status.Unable, r.status.Refuses = 0, ""
	for _, t := range r.agents {
		t.answer = nil
	}
	at := make(map[netip.Addr]*roundsAgent, len(list))
	for k := range list {
		x := &list[k]
		t := r.agents[x.agent]
		if t == nil || t.life != x.Life {
			t = &roundsAgent{life: x.Life}
			r.agents[x.agent] = t
		}
		err := x.Wrong
		if err == nil {
			err = t.compare(x)
		}
		if err == nil && x.Rounds.Address.IsValid() {
			if other := at[x.Rounds.Address]; other != nil { // packets do not say which of the two sent them
				err = fmt.Errorf("its address %v is that of another agent as well", x.Rounds.Address)
				other.answer = nil
				other.refused++
			}
			at[x.Rounds.Address] = t
		}
		if err != nil {
			err = fmt.Errorf("agent %s reports rounds that cannot be: %w", cut(x.agent), err)
			*t = roundsAgent{life: x.Life, refused: t.refused + 1}
			r.status.Refused++
			r.status.Why = err.Error()
			refused = append(refused, err)
			continue
		}
		r.status.Agents++
		r.status.add(x.agent, t.unable)
	}
	for k := range r.probes {
		r.count(&r.probes[k])
	}
	return refused
}

// add counts the rounds of a probe.
func (u *unsent) add(rounds int64) {
	if rounds > 0 {
		u.rounds += uint64(rounds)
		u.probes++
	}
}

// add counts the rounds that the port of an agent did not take.
func (s *roundsStatus) add(name string, u unsent) {
	if u.rounds == 0 {
		return
	}
	s.Unsent += u.rounds
	if s.Unable++; s.Refuses == "" {
		s.Refuses = fmt.Sprintf("the port of agent %s did not take %d rounds of %d probes: \"hopscope agent status\" there says why", cut(name), u.rounds, u.probes)
	}
}

// compare holds an answer against the one before.
func (t *roundsAgent) compare(x *Answer) error {
	n := x.Rounds
	var unable unsent
	sent := make(map[string]*probe.SentRounds, len(n.Sent))
	for k := range n.Sent {
		s := &n.Sent[k]
		sent[s.ID] = s
		old := t.sent[s.ID]
		// Twice as many as fit, and some for a clock that is set.
		most := 2*(x.Answered-t.asked)/int64(s.Interval) + 16
		if old == nil || t.epoch != n.Epoch || old.Number != s.Number {
			if t.sent != nil && t.epoch != n.Epoch { // all since the plan came
				unable.add(min(int64(s.Failed), most))
			}
			continue
		}
		failed := int64(int32(s.Failed - old.Failed))
		if failed < 0 || failed > most {
			return fmt.Errorf("of probe %.40q %d rounds were not sent after %d, at most %d more", s.ID, s.Failed, old.Failed, most)
		}
		unable.add(failed)
		if more := int64(int32(s.Next - old.Next)); more < 0 || more > most {
			return fmt.Errorf("round %d of probe %.40q comes after round %d, at most %d later", s.Next, s.ID, old.Next, most)
		}
	}
	arrived := make(map[receivedKey]*probe.ReceivedRounds, len(n.Received))
	for k := range n.Received {
		c := &n.Received[k]
		key := receivedKey{c.Source, c.Number}
		arrived[key] = c
		old := t.arrived[key]
		if old == nil || old.Begun != c.Begun || old.Epoch != c.Epoch {
			continue
		}
		if int32(c.Next-old.Next) < 0 || int32(c.Received-old.Received) < 0 {
			return fmt.Errorf("of number %d of %v came %d rounds below %d, and before %d below %d", c.Number, netip.AddrFrom4(c.Source), c.Received, c.Next, old.Received, old.Next)
		}
		if sum, of := c.Transit-old.Transit, c.Transits-old.Transits; of > c.Received-old.Received || sum > uint64(of)*probe.MostTransit {
			return fmt.Errorf("of number %d of %v %d more rounds were in switches for %d ns, of %d that came", c.Number, netip.AddrFrom4(c.Source), of, sum, c.Received-old.Received)
		}
	}
	t.sent, t.before, t.arrived, t.epoch, t.asked, t.answer, t.unable = sent, t.arrived, arrived, n.Epoch, x.Asked, n, unable
	return nil
}

// follow takes what this survey says of a probe. Where one side did not answer, the next survey goes on from the one before.
func (r *Rounds) count(p *followedProbe) {
	from, to := r.agents[p.from], r.agents[p.to]
	if from == nil || to == nil || from.answer == nil || to.answer == nil {
		return
	}
	s := from.sent[p.id]
	if s == nil || s.Interval != p.interval || !slices.Equal(s.Route, p.route) { // of another network, or not sent yet
		p.state.begun = false
		return
	}
	source := from.answer.Address.As4()
	c, old := to.arrived[receivedKey{source, s.Number}], to.before[receivedKey{source, s.Number}]
	if c != nil && old != nil && c.Epoch == from.epoch && c.Epoch == old.Epoch && c.Begun == old.Begun {
		p.transit += c.Transit - old.Transit
		p.transits += uint64(c.Transits - old.Transits)
	}
	key := roundsKey{[2]uint64{from.life, from.refused}, [2]uint64{to.life, to.refused}, from.epoch, s.Number, source, to.answer.Spoiled}
	sent, lost, ok := p.step(&key, s.Next, c, to.answer.Unfollowed > 0)
	if ok {
		r.status.Probes++
	} else {
		r.status.Declined++
	}
	p.sent, p.lost = p.sent+sent, p.lost+lost
	r.status.Sent, r.status.Lost = r.status.Sent+sent, r.status.Lost+lost
}

// step returns the rounds whose fate is newly known. The sender is at round next. The receiver counted c, nil for
// nothing, and has no room for more probes if full is set. If ok is false the probe begins anew.
func (p *followedProbe) step(key *roundsKey, next uint32, c *probe.ReceivedRounds, full bool) (sent, lost uint64, ok bool) {
	x := &p.state
	if c != nil && c.Epoch != key.epoch {
		if int32(c.Epoch-key.epoch) > 0 { // of a plan that the sender does not have
			x.begun = false
			return 0, 0, false
		}
		c = nil
	}
	fits := x.begun && x.key == *key
	switch {
	case !fits:
	case c != nil && x.present: // and the sender's counts include all earlier arrivals
		fits = c.Begun == x.counts && !behind(next, x.heard)
	case c != nil:
		fits = x.based && !behind(c.First, x.base)
	default:
		fits = !x.present && !full
	}
	switch {
	case !fits:
		first := c == nil && !full && x.begun && x.key.continues(key) && next < mostFirst
		*x = roundsState{key: *key, begun: true, next: next}
		if first { // the receiver would have counted every round of this plan
			x.based, x.reported = true, pending{known: true}
		}
		if c != nil {
			x.present, x.counts, x.based, x.base, x.heard, x.settled = true, c.Begun, true, c.First, c.Next, later(next, c.Next)
		}
		return 0, 0, false
	case !x.based: // the receiver would have counted all that is sent from now on
		x.based, x.base, x.settled, x.next = true, next, next, next
		x.reported = pending{to: next, known: true}
		return 0, 0, true
	}
	now := pending{x.settled, 0, true}
	if c != nil && behind(x.settled+64, c.Next) { // too long ago to know which came; rounds that are 64 late do not count any more
		now, x.later = x.later, pending{c.Next - 64, missing(x.base, c.Next-64, c), true}
	} else {
		now.missing, x.later = missing(x.base, now.to, c), pending{}
	}
	switch {
	case !now.known:
	case !x.reported.known: // rounds before may have been given out when it was followed the last time
		x.reported = now
	case behind(x.reported.to, now.to):
		sent = uint64(now.to - x.reported.to)
		if behind(now.missing, x.reported.missing) { // some came after all, and are subtracted from the next losses
			now.missing = x.reported.missing
		}
		lost = min(sent, uint64(now.missing-x.reported.missing))
		x.reported = now
	}
	x.settled = later(x.settled, x.next)
	if c != nil {
		x.present, x.counts, x.heard = true, c.Begun, c.Next
		x.settled = later(x.settled, c.Next)
	}
	x.next = next
	return sent, lost, true
}

// missing is how many rounds from base on and below another one did not come by what a receiver counted, nil for nothing. The other one
// is among its last 64 rounds, or behind them.
func missing(base, to uint32, c *probe.ReceivedRounds) uint32 {
	if c == nil {
		return to - base
	}
	below := c.Received
	if behind(to, c.Next) {
		below -= uint32(bits.OnesCount64(c.Window & (1<<(c.Next-to) - 1)))
	}
	return to - base - below
}

// behind reports whether round a is before round b.
func behind(a, b uint32) bool { return int32(a-b) < 0 }

// later is the later one of two rounds.
func later(a, b uint32) uint32 {
	if behind(a, b) {
		return b
	}
	return a
}
