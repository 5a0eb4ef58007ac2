package events

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
	"github.com/hopscope/hopscope/inference/state"
)

// The state of a Detector as bytes of a version:
//
//	state:     version<1b> windows<n> id<n> hops<n> watched<n> links<n> paths<n> refused paths<n> hops<n> drops<n> faults<n> { table }, in the order of detectors
//	table:     subjects<n> { key last<n> state }, ordered by key
//	finding:   id<n>, 0 for none, and otherwise kind<text> severity<n> start<n> updated<n> cause<n> evidence<n> element
//	           learning<n> node<n> egress interface<n> flow exporter<16b> hardware id<n> without node<n> (from version 9)
//	           reason<n> statistic<text> value<f> baseline<f> text<text>
//	element:   its text, such as "node 7", empty for none
//	n:         8 bytes, little endian, two's complement
//	f:         the 8 bytes of a float64, little endian; no infinity, no NaN
//	text:      length<n> bytes
//
// The parts of a table's keys and states are listed beside them. The version is stateVersion, beside the list of
// detectors.

// AppendState appends all that the detector remembers, without its settings. The bytes are for [Detector.ReadState] of
// the same version of this package alone.
func (d *Detector) AppendState(dst []byte) []byte {
	return state.Append(dst, d.code)
}

// ReadState replaces all that the detector remembers with what [Detector.AppendState] wrote; the settings stay. From
// then on it goes on as the one that wrote would have. If b is no such state, which is a [*state.Error], the detector
// stays as it is. The memory that it takes is in proportion to the length of b, which is not kept.
func (d *Detector) ReadState(b []byte) error {
	fresh := New(d.journal.Cfg)
	if err := state.Read("state of detectors", b, fresh.code); err != nil {
		return err
	}
	*d = *fresh
	return nil
}

func (d *Detector) code(sc *state.Coder) {
	c := &subject.Coder{Coder: sc, Journal: d.journal, Version: sc.Version(oldestVersion, stateVersion)}
	subject.Number(c, &c.Windows)
	subject.Number(c, &c.ID)
	count := func(n *int) {
		subject.Number(c, n)
		c.Check("number of subjects", *n >= 0 && *n <= math.MaxInt32)
	}
	count(&c.Stats.Hops)
	if c.Version >= 3 {
		count(&c.Stats.Watched)
		count(&c.Stats.Links)
	}
	if c.Version >= 13 {
		count(&c.Stats.Paths)
		subject.Number(c, &c.Stats.PathsRefused)
	}
	subject.Number(c, &c.Stats.HopsRefused)
	subject.Number(c, &c.Stats.DropsRefused)
	subject.Number(c, &c.Stats.FaultsRefused)
	if c.Version == 2 {
		readVersion2(c)
	} else {
		codeParts(c)
	}
	if c.Reading() {
		slices.SortFunc(c.Open, func(a, b *inference.Finding) int { return cmp.Compare(a.ID, b.ID) })
		distinct := len(slices.CompactFunc(slices.Clone(c.Open), func(a, b *inference.Finding) bool { return a.ID == b.ID }))
		c.Check("ids of two findings", distinct == len(c.Open))
	}
}

// codeParts codes the states of the detectors. Uses of hops are missing before version 6, counts of interfaces before
// version 8, paths of probes before version 13, contrasts of shares before version 15, and ways of probes before version 16.
func codeParts(c *subject.Coder) {
	var hops *subject.Table[inference.HopKey, hop]
	for _, s := range c.States {
		switch s := s.(type) {
		case *subject.Table[inference.HopKey, hop]:
			hops = s
		case *subject.Table[inference.HopKey, use]:
			if c.Version < 6 {
				if c.OK() {
					uses{s}.inherit(hops)
				}
				continue
			}
		case *subject.Table[countKey, counted]:
			if c.Version < 8 {
				continue
			}
		case *subject.Table[probedKey, probed]:
			if c.Version < 13 {
				continue
			}
		case *ways.Contrasts:
			if c.Version < 15 {
				continue
			}
		case *ways.ProbeWays, *ways.Routers, *ways.ProbeLinks:
			if c.Version < 16 {
				continue
			}
		}
		s.Code(c)
	}
}
