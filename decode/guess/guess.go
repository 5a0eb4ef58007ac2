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

// What a profile has to reach before it is named.
const (
	minExplained = 0.95 // of the sample
	minPlausible = 0.75 // of the values, test by test
	sameShare    = 0.02 // profiles that differ less in the share that they explain explain the same
)

// Guesser tries profiles. It is for one goroutine.
type Guesser struct {
	profiles []demux.Profile
	trials   []*trial            // of the profiles as they are
	ports    map[uint16][]*trial // of those that a port can be changed of, with another one
	known    map[uint16]bool     // ports that any profile names
}

// maxPorts bounds how many report ports are tried at a time.
const maxPorts = 64

// New makes a guesser for the profiles, in the order in which the first one of those that say exactly the same is named.
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

// know remembers the ports that p names.
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

// Builtin gives all built-in profiles.
func Builtin() (list []demux.Profile) {
	for _, name := range demux.Profiles() {
		p, _ := demux.Lookup(name)
		list = append(list, p)
	}
	return list
}

// at gives trials of the profiles that read reports or INT-path probes, which look for them at one more port.
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

// Reads reports whether p reads all of s, be it that it holds little.
func (g *Guesser) Reads(p *demux.Profile, s *Sample) bool {
	return g.reading(p, s) > silent
}

// Fails reports whether p reads less of s than that it holds little.
func (g *Guesser) Fails(p *demux.Profile, s *Sample) bool { return g.reading(p, s) == unread }

func (g *Guesser) reading(p *demux.Profile, s *Sample) reading {
	for _, t := range g.trials {
		if alike(t.profile, p) {
			r, _ := t.read(s)
			return r
		}
	}
	r, _ := newTrial(p).read(s)
	return r
}

// alike reports whether p and q are the same profile with the same ports.
func alike(p, q *demux.Profile) bool {
	return p.Name == q.Name && slices.Equal(p.ReportPorts, q.ReportPorts) &&
		slices.EqualFunc(p.Formats, q.Formats, func(a, b packet.Format) bool { return slices.Equal(a.Where().Ports, b.Where().Ports) })
}

// Explains reports whether any profile reads s, and finds something in it.
func (g *Guesser) Explains(s *Sample) bool {
	for _, t := range g.all(udpPort(s)) {
		if r, _ := t.read(s); r == content {
			return true
		}
	}
	return false
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

// Score says how well a profile explains a sample.
type Score struct {
	Profile   demux.Profile // with the port where reports were found
	Port      uint16        // that port, if it is not one that the profile names; else 0
	Explained int           // packets of which it reads everything
	Plausible float64       // share of the values that can be, in the worst test
	Clock     int           // 1: its times go as fast as those of receipt; -1: they do not; 0: that cannot be told
	text      []byte        // all reports, to compare
	content   string        // what is in them, for people
}

// Verdict is what was found.
type Verdict struct {
	Samples int
	// Best are the profiles that explain the sample: one, none, or several that nothing tells apart.
	Best []Score
}

// Judge tries all profiles on a sample of what one sender sends.
func (g *Guesser) Judge(samples []Sample) Verdict {
	v := Verdict{Samples: len(samples)}
	if len(samples) == 0 {
		return v
	}
	var good []Score
	trials := g.all(commonPort(samples))
	broken := brokenINT(trials, samples)
	for _, t := range trials {
		s := t.score(samples, broken)
		if float64(s.Explained) >= minExplained*float64(len(samples)) && s.Plausible >= minPlausible {
			good = append(good, s)
		}
	}
	slices.SortStableFunc(good, func(a, b Score) int { return cmp.Compare(b.Explained, a.Explained) })
	for _, s := range good {
		if float64(good[0].Explained-s.Explained) >= max(1, sameShare*float64(len(samples))) {
			break
		}
		v.add(s)
	}
	v.byClock()
	return v
}

// add adds a profile unless one that is there says exactly the same.
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

// brokenINT gives the packets in reports that the specifications mark as carrying INT which then breaks a rule. Passing such bytes over
// is no evidence for a profile: it reads less than others, and nothing that it checks could have failed.
func brokenINT(trials []*trial, samples []Sample) map[place]decode.FlowKey {
	broken := map[place]decode.FlowKey{}
	for _, t := range trials {
		if t.profile.Name != autoName {
			continue
		}
		for i := range samples {
			_, reports := t.read(&samples[i])
			for k, r := range reports {
				if r.Err.Format == decode.INTMD && r.Format == decode.TelemetryReport {
					broken[place{i, k}] = r.Flow
				}
			}
		}
	}
	return broken
}

// score tries t on the samples.
func (t *trial) score(samples []Sample, broken map[place]decode.FlowKey) Score {
	s := Score{Profile: *t.profile, Port: t.port}
	p := newPlausibility(t.profile)
	for i := range samples {
		r, reports := t.read(&samples[i])
		s.text = binary.AppendUvarint(s.text, uint64(len(reports)))
		for _, x := range reports {
			s.text = reportjson.Append(s.text, uint64(i), x)
		}
		for k, x := range reports {
			if flow, is := broken[place{i, k}]; is && x.INT == 0 && flow == x.Flow {
				r = unread
			}
		}
		if r != content {
			continue
		}
		s.Explained++
		for _, x := range reports {
			if s.content == "" {
				s.content = contentOf(x)
			}
			t.profile.Correct(x)
			p.see(x)
		}
	}
	s.Plausible, s.Clock = p.result()
	return s
}
