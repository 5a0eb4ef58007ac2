package guess

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
)

// The scores that a profile must reach to be named.
const (
	minExplained = 0.95 // of the sample
	minPlausible = 0.75 // of the values, test by test
	sameShare    = 0.02 // profiles that differ less in the share that they explain explain the same
)

// Guesser tries profiles. It is for one goroutine.
type Guesser struct {
	profiles []demux.Profile
	trials   []*trial            // of the profiles as they are
	latest   *trial              // of these, the one that explained a sample last: it explains the next one of its sender
	ports    map[uint16][]*trial // of those that a port can be changed of, with another one
	known    map[uint16]bool     // ports that any profile names
	tunnels  []*trial            // of profiles that look for INT in GRE under a number of a sample; the last few
}

// maxPorts bounds how many report ports are tried at a time.
const maxPorts = 64

// New makes a guesser for the profiles. Of several with exactly the same result, the first one is named.
func New(profiles []demux.Profile) *Guesser {
	g := &Guesser{ports: map[uint16][]*trial{}, known: map[uint16]bool{}}
	for i := range profiles {
		if tryable(&profiles[i]) {
			g.profiles = append(g.profiles, profiles[i])
			g.know(&profiles[i])
		}
	}
	for i := range g.profiles {
		g.trials = append(g.trials, newTrial(&g.profiles[i]))
	}
	return g
}

// know records the ports that p names.
func (g *Guesser) know(p *demux.Profile) {
	for _, port := range slices.Concat(p.ReportPorts, p.INT.Ports, []uint16{p.INT.TailPort}) {
		g.known[port] = true
	}
	for _, f := range p.Formats {
		for _, port := range f.Where().Ports {
			g.known[port] = true
		}
	}
	delete(g.known, 0)
}

// Builtin returns all built-in profiles.
func Builtin() (list []demux.Profile) {
	for _, name := range demux.Profiles() {
		p, _ := demux.Lookup(name)
		list = append(list, p)
	}
	return list
}

// at returns trials of the profiles that read reports or INT-path probes, with one additional port.
func (g *Guesser) at(port uint16) []*trial {
	if list, ok := g.ports[port]; ok {
		return list
	}
	if len(g.ports) >= maxPorts {
		clear(g.ports)
	}
	var list []*trial
	for i := range g.profiles {
		p, ok := g.profiles[i].At(port)
		if !ok {
			continue
		}
		t := newTrial(&p)
		t.port = port
		list = append(list, t)
	}
	g.ports[port] = list
	return list
}

// maxTunnels bounds how many profiles with a protocol number of GRE are remembered.
const maxTunnels = 16

// inGRE returns the trials that may read INT under a GRE protocol number that p does not have. They are of p, and of
// auto-unflagged if p is auto, which skips packets whose report denies INT. Port is one that p was given, or 0.
func (g *Guesser) inGRE(protocol uint16, p *demux.Profile, port uint16) (list []*trial) {
	if protocol == 0 || assigned(protocol) {
		return nil
	}
	add := func(base *demux.Profile) {
		q, ok := base.InGRE(protocol)
		if !ok {
			return
		}
		for _, t := range g.tunnels {
			if alike(t.profile, &q) {
				list = append(list, t)
				return
			}
		}
		t := newTrial(&q)
		t.gre, t.port = protocol, port
		if len(g.tunnels) >= maxTunnels {
			g.tunnels = nil
		}
		g.tunnels, list = append(g.tunnels, t), append(list, t)
	}
	add(p)
	for i := range g.profiles {
		if p.Name == autoName && g.profiles[i].Name == UnflaggedProfile {
			q, ok := g.profiles[i], true
			if port != 0 {
				q, ok = q.At(port)
			}
			if ok {
				add(&q)
			}
		}
	}
	return list
}

// assigned reports whether a protocol number of GRE belongs to another protocol: one with an EtherType, bridged
// frames, or mirrored ones (ERSPAN).
func assigned(protocol uint16) bool {
	return packet.Announced(protocol) || protocol == 0x6558 || protocol == 0x88be || protocol == 0x22eb
}

// Hidden returns the protocol number of GRE under which s holds INT that p ignores, or 0. As everywhere, all of it
// has to be read: the number alone shows nothing.
func (g *Guesser) Hidden(p *demux.Profile, s *Sample) uint16 {
	if protocol := g.hidden(g.trial(p), s); protocol != 0 {
		return protocol
	}
	if t := g.elsewhere(p, udpPort(s)); t != nil {
		return g.hidden(t, s)
	}
	return 0
}

// elsewhere is the trial of p at a port that no profile names; nil without.
func (g *Guesser) elsewhere(p *demux.Profile, port uint16) *trial {
	if port == 0 || g.known[port] {
		return nil
	}
	for _, t := range g.at(port) {
		if t.profile.Name == p.Name {
			return t
		}
	}
	return nil
}

// hidden is Hidden for the profile of t.
func (g *Guesser) hidden(t *trial, s *Sample) uint16 {
	t.decoder.GRE()
	t.read(s)
	protocol := t.decoder.GRE()
	for _, t := range g.inGRE(protocol, t.profile, t.port) {
		if r, reports := t.read(s); r.found() && (!ofPacket(reports[0]) || carries(reports)) { // a sample may have a hop of its own
			return protocol
		}
	}
	return 0
}

// Reads reports whether p reads all of s, be it that it holds little.
func (g *Guesser) Reads(p *demux.Profile, s *Sample) bool {
	return g.reading(p, s) > nameless
}

// Fails reports whether p reads less of s than that it holds little.
func (g *Guesser) Fails(p *demux.Profile, s *Sample) bool { return g.reading(p, s) == unread }

func (g *Guesser) reading(p *demux.Profile, s *Sample) reading {
	r, _ := g.trial(p).read(s)
	if s.Within {
		r = max(r, empty)
	}
	return r
}

// trial returns the trial of p.
func (g *Guesser) trial(p *demux.Profile) *trial {
	for _, t := range g.trials {
		if alike(t.profile, p) {
			return t
		}
	}
	return newTrial(p)
}

// alike reports whether p and q are the same profile with the same ports and the same number of INT in GRE.
func alike(p, q *demux.Profile) bool {
	return p.Name == q.Name && slices.Equal(p.ReportPorts, q.ReportPorts) && p.INT.GREProtocol == q.INT.GREProtocol &&
		slices.EqualFunc(p.Formats, q.Formats, func(a, b packet.Format) bool { return slices.Equal(a.Where().Ports, b.Where().Ports) })
}

// Explains reports whether any profile reads s, and finds something in it.
func (g *Guesser) Explains(s *Sample) bool {
	if g.latest != nil && g.latest.explains(s) {
		return true
	}
	for _, t := range g.trials {
		if t != g.latest && t.explains(s) {
			g.latest = t
			return true
		}
	}
	port := udpPort(s)
	return port != 0 && slices.ContainsFunc(g.at(port), func(t *trial) bool { return t.explains(s) })
}

func (g *Guesser) all(port uint16) []*trial {
	if port == 0 {
		return g.trials
	}
	return slices.Concat(g.trials, g.at(port))
}

// udpPort is the UDP destination port of a captured frame, 0 without.
func udpPort(s *Sample) uint16 {
	if s.Link == Datagram {
		return 0
	}
	var p packet.Packet
	p.Frame(s.Link, s.Data, s.Length)
	if p.IP == 0 || p.Fragment || p.Proto != packet.ProtoUDP || !p.HasPorts {
		return 0
	}
	return p.DstPort()
}

// Score is the degree to which a profile explains a sample.
type Score struct {
	Profile   demux.Profile // with the port where reports were found
	Port      uint16        // that port, if it is not one that the profile names; else 0
	GRE       uint16        // protocol number of GRE that it was given in addition; 0 without
	Explained int           // packets of which it reads everything, and in which hops name their node
	Nameless  int           // packets of which it reads everything, and in which a hop names no node
	Plausible float64       // share of the values that can be, in the worst test
	Clock     int           // 1: its times go as fast as those of receipt; -1: they do not; 0: that is unknown
	text      []byte        // all reports, to compare
	content   string        // their content, for display
}

// Verdict is the result of a sample.
type Verdict struct {
	Samples int
	// Best are the profiles that explain the sample: one, none, or several that nothing distinguishes.
	Best []Score
	// Most is the one that explains the largest part of it, where none explains the sample: half of it at least.
	Most *Score
	// Nameless: Explained of Best and Most counts packets whose hops name no node. They are no evidence to adopt a
	// profile by.
	Nameless bool
}

// Judge tries all profiles on a sample of one sender. It also tries current with the GRE protocol number under which
// most of the sample hides INT from it.
func (g *Guesser) Judge(samples []Sample, current *demux.Profile) Verdict {
	v := Verdict{Samples: len(samples)}
	if len(samples) == 0 {
		return v
	}
	port, protocol := commonPort(samples), g.commonGRE(samples, current)
	plain, tunnels := g.all(port), g.inGRE(protocol, current, 0)
	there := g.elsewhere(current, port)
	if there != nil {
		tunnels = append(tunnels, g.inGRE(protocol, there.profile, port)...)
	}
	broken := brokenINT(plain, samples)
	if len(tunnels) > 0 {
		passedOver(broken, g.trial(current), tunnels, samples)
		if there != nil {
			passedOver(broken, there, tunnels, samples)
		}
	}
	trials := slices.Concat(plain, tunnels)
	scores := make([]Score, len(trials))
	for i, t := range trials {
		scores[i] = t.score(samples, broken)
	}
	v.choose(scores)
	if len(v.Best) > 0 || v.Most != nil {
		return v
	}
	v.Nameless = true
	for i := range scores {
		scores[i].Explained += scores[i].Nameless
	}
	v.choose(scores)
	return v
}

// choose sets Best to the profiles that explain the sample, or Most to the one that explains most of it.
func (v *Verdict) choose(scores []Score) {
	var good []Score
	for i := range scores {
		s := &scores[i]
		if float64(s.Explained) >= minExplained*float64(v.Samples) && s.Plausible >= minPlausible {
			good = append(good, *s)
		} else if 2*s.Explained >= v.Samples && s.Plausible >= minPlausible && (v.Most == nil || s.Explained > v.Most.Explained) {
			v.Most = s
		}
	}
	if len(good) > 0 {
		v.Most = nil
	}
	slices.SortStableFunc(good, func(a, b Score) int { return cmp.Compare(b.Explained, a.Explained) })
	for _, s := range good {
		if float64(good[0].Explained-s.Explained) >= max(1, sameShare*float64(v.Samples)) {
			break
		}
		v.add(s)
	}
	v.byClock()
}

// add adds a profile unless a listed one has exactly the same result.
func (v *Verdict) add(s Score) {
	for i := range v.Best {
		b := &v.Best[i]
		if bytes.Equal(b.text, s.text) && b.Profile.Units == s.Profile.Units {
			return
		}
	}
	v.Best = append(v.Best, s)
}

// byClock leaves those whose times go as fast as those of receipt, if there are any.
func (v *Verdict) byClock() {
	if len(v.Best) > 1 && slices.ContainsFunc(v.Best, func(s Score) bool { return s.Clock > 0 }) {
		v.Best = slices.DeleteFunc(v.Best, func(s Score) bool { return s.Clock < 0 })
	}
}

// commonGRE is the protocol number of GRE under which most of the samples hide INT from p, 0 without.
func (g *Guesser) commonGRE(samples []Sample, p *demux.Profile) (protocol uint16) {
	count := map[uint16]int{}
	for i := range samples {
		k := g.Hidden(p, &samples[i])
		count[k]++
		if n := count[k]; k != 0 && (protocol == 0 || n > count[protocol] || n == count[protocol] && k < protocol) {
			protocol = k
		}
	}
	return protocol
}

// commonPort is the UDP destination port that most of the captured frames have.
func commonPort(samples []Sample) (port uint16) {
	count := map[uint16]int{}
	for i := range samples {
		p := udpPort(&samples[i])
		count[p]++
		if n := count[p]; p != 0 && (n > count[port] || port == 0 || n == count[port] && p < port) {
			port = p
		}
	}
	return port
}

// place names a report of a sample.
type place struct{ sample, report int }

// brokenINT returns the packets in reports whose INT contradicts the specifications. It is marked and breaks a rule,
// or it decodes although the report denies it. A profile that skips such bytes gains no evidence: it reads less than
// others, and none of its checks could have failed.
func brokenINT(trials []*trial, samples []Sample) map[place]decode.FlowKey {
	broken := map[place]decode.FlowKey{}
	for _, t := range trials {
		if t.profile.Name != autoName {
			continue
		}
		for i := range samples {
			_, reports := t.read(&samples[i])
			for k, r := range reports {
				if r.Err.Format == decode.INTMD && r.Format == decode.TelemetryReport || r.Remarks&decode.RemarkUnflagged != 0 {
					broken[place{i, k}] = r.Flow
				}
			}
		}
	}
	return broken
}

// passedOver adds the packets of which t reads all but the INT in GRE, which one of tunnels finds.
func passedOver(broken map[place]decode.FlowKey, t *trial, tunnels []*trial, samples []Sample) {
	for i := range samples {
		_, without := t.read(&samples[i])
		for _, u := range tunnels {
			_, with := u.read(&samples[i])
			for k := 0; k < len(without) && carries(with) && !carries(without); k++ {
				if ofPacket(without[k]) {
					broken[place{i, k}] = without[k].Flow
				}
			}
			for k := range min(len(with), len(without)) {
				if with[k].INT != 0 && without[k].INT == 0 {
					broken[place{i, k}] = without[k].Flow
				}
			}
		}
	}
}

// score tries t on the samples.
func (t *trial) score(samples []Sample, broken map[place]decode.FlowKey) Score {
	s := Score{Profile: *t.profile, Port: t.port, GRE: t.gre}
	p := newPlausibility(t.profile)
	for i := range samples {
		r, reports := t.read(&samples[i])
		s.text = binary.AppendUvarint(s.text, uint64(len(reports)))
		for _, x := range reports {
			s.text = reportjson.Append(s.text, uint64(i), x)
		}
		for k, x := range reports {
			if flow, is := broken[place{i, k}]; is && x.INT == 0 && flow == x.Flow && !(ofPacket(x) && carries(reports)) {
				r = unread
			}
		}
		switch r {
		case content:
			s.Explained++
		case nameless:
			s.Nameless++
		default:
			continue
		}
		for _, x := range reports {
			if s.content == "" && (len(reports) == 1 || !ofPacket(x)) {
				s.content = contentOf(x)
			}
			t.profile.Correct(x)
			p.see(x)
		}
	}
	s.Plausible, s.Clock = p.result()
	return s
}
