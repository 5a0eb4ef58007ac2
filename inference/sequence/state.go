package sequence

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/state"
)

// The state of a tracker is its version <1b>, then for each exporter that counts its reports, little endian:
//
//	address <16b>  destination <8b>  node <4b>  hardware id <1b>  width <1b>  flags <1b>
//	newest number <4b>  time of the first report <8b>  time of the last <8b>
//	missing numbers that are provisional <4b>  the first of them, or one before it <4b>, where a flag says so
//	uptime of the exporter, in ms <4b>  time of its report <8b>, if a flag is set
//
// Version 1 has neither, and is written where there is neither. Version 2 does not have the first provisional one.
// Version 3 does not have the last line, and is written where no exporter states how long it has run.
const stateVersion = 4

// savedExporter is the part of an entry that outlives a run.
type savedExporter struct {
	addr                     decode.Addr
	to                       uint64
	node                     uint32
	hwID, width              uint8
	anonymous, alias, proven bool
	node0                    bool // the node is the one with the id 0; without that, 0 is none
	head                     uint32
	since, last              int64
	provisional              uint32
	edge                     uint32 // no provisional number is before it
	timed                    bool
	uptime                   uint32 // ms since the exporter began, at upAt
	upAt                     int64
}

func (x *savedExporter) code(c *state.Coder, version uint8) {
	c.Addr("address", &x.addr)
	state.Fixed(c, "destination", &x.to)
	state.Fixed(c, "node", &x.node)
	state.Fixed(c, "hardware", &x.hwID)
	state.FixedTo(c, "width", 32, &x.width)
	c.Check("width", x.width > 0)
	some := x.provisional > 0
	c.Flags("flags", &x.anonymous, &x.alias, &x.proven, &x.node0, &some, &x.timed)
	c.Check("flags", (!x.anonymous || x.alias && x.node == 0) && (!x.node0 || !x.anonymous && x.node == 0) && (!some || version >= 2) && (!x.timed || version >= 4))
	state.Fixed(c, "number", &x.head)
	c.Check("number", x.head <= math.MaxUint32>>(32-min(x.width, 32)))
	state.Fixed(c, "times", &x.since, &x.last)
	if some {
		state.Fixed(c, "provisional", &x.provisional)
		c.Check("provisional", x.provisional > 0)
		mask := uint32(math.MaxUint32) >> (32 - min(x.width, 32))
		if version < 3 && c.Reading() {
			x.edge = (x.head - x.provisional) & mask
		} else if version >= 3 {
			state.Fixed(c, "provisional", &x.edge)
			behind := (x.head - x.edge) & mask
			c.Check("provisional", x.edge <= mask && x.provisional <= behind && behind <= mask>>1)
		}
	}
	if x.timed {
		state.Fixed(c, "uptime", &x.uptime)
		state.Fixed(c, "uptime", &x.upAt)
	}
}

// AppendState appends the numbers that the exporters have reached, for [Tracker.ReadState] of a later run. It takes 51
// bytes for each, 8 more where numbers are provisional, and 12 more where the exporter states how long it has run.
func (t *Tracker) AppendState(dst []byte) []byte {
	newest := uint8(1)
	for i := range t.entries {
		switch e := &t.entries[i]; {
		case e.timed && (e.sequenced || e.resumed):
			newest = stateVersion
		case e.provisional > 0:
			newest = max(newest, 3)
		}
	}
	return state.Append(dst, func(c *state.Coder) {
		version := c.Version(1, newest)
		for i := range t.entries {
			if e := &t.entries[i]; e.sequenced || e.resumed {
				x := savedExporter{
					addr: e.addr(), to: e.to, node: uint32(e.rest >> 32), hwID: byte(e.rest >> 16), width: e.space.width(),
					anonymous: e.isAnonymous(), alias: e.alias, proven: e.proven, head: e.head, since: e.since, last: e.last,
					node0: e.rest>>32 == 0 && e.rest&unnamed == 0, provisional: e.provisional, edge: e.edge,
					timed: e.timed, uptime: e.uptime, upAt: e.upAt,
				}
				x.code(c, version)
			}
		}
	})
}

// ReadState adds the exporters whose state AppendState wrote. It takes those with addresses that mine names, or all if
// mine is nil, as several trackers share the exporters among them. Exporters that are known already, and those for
// which there is no place, are left out. If a later number comes, the numbers between, up to Config.MaxGap, were missed
// while no collector ran. Or one that ended received them and could not publish them. The same holds for provisional
// numbers. Other bytes are refused with a [*state.Error], and then nothing is changed.
func (t *Tracker) ReadState(b []byte, mine func(*decode.Addr) bool) error {
	var all []savedExporter
	err := state.Read("state of a tracker", b, func(c *state.Coder) {
		version := c.Version(1, stateVersion)
		state.Items(c, "exporters", math.MaxInt, &all, func(x *savedExporter, c *state.Coder) { x.code(c, version) })
	})
	if err != nil {
		return err
	}
	for i := range all {
		if x := &all[i]; mine == nil || mine(&x.addr) {
			t.resume(x)
		}
	}
	return nil
}

// resume makes an exporter known, if there is a place for it.
func (t *Tracker) resume(x *savedExporter) {
	sp := newSpace(&x.addr, x.to, x.node, x.hwID, x.width)
	switch {
	case x.anonymous:
		sp = sp.nameless()
	case x.node == 0 && !x.node0:
		sp.rest |= unnamed
	}
	if t.slot(sp).entry != 0 || x.alias && t.slot(sp.nameless()).entry != 0 || len(t.entries) == cap(t.entries) || !t.places.claimPlace() {
		return
	}
	t.entries = append(t.entries, entry{
		space: sp, alias: x.alias, proven: x.proven, times: 2, since: x.since, last: x.last,
		timed: x.timed, uptime: x.uptime, upAt: x.upAt,
		sequence: sequence{
			width: x.width, seen: t.room.record(), head: x.head, started: true, resumed: true, trusted: x.proven,
			wait: t.room.least(), aged: x.head, ageHead: x.head, ageTime: x.last,
			counts: counts{down: uint64(x.provisional)},
		},
	})
	i := uint32(len(t.entries) - 1)
	t.entries[i].index = i
	if t.runs > 0 {
		l := newNumberLog(t.runs, x.head, t.room.longest)
		if x.provisional > 0 {
			l.gaps = append(l.gaps, stretch{x.edge, (x.head-x.edge)&t.entries[i].mask() + 1})
		}
		t.entries[i].log = l
	}
	if x.proven {
		t.proven++
		t.entries[i].windows = provenWindows
	} else {
		t.guests = append(t.guests, i)
	}
	t.name(i)
}
