package sequence

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode"
)

// The state of a tracker is its version <1b>, then for each exporter that counts its reports, little endian:
//
//	address <16b>  destination <8b>  node <4b>  hardware id <1b>  width <1b>  flags <1b>
//	newest number <4b>  time of the first report <8b>  time of the last <8b>
const (
	stateVersion = 1
	stateBytes   = 16 + 8 + 4 + 1 + 1 + 1 + 4 + 8 + 8

	stateAnonymous = 1 << 0
	stateAlias     = 1 << 1
	stateProven    = 1 << 2
)

// AppendState appends the numbers that the exporters have reached, for [Tracker.ReadState] of a later run: 51 bytes for
// each.
func (t *Tracker) AppendState(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, stateVersion)
	for i := range t.entries {
		e := &t.entries[i]
		if !e.sequenced && !e.resumed {
			continue
		}
		addr := e.addr()
		dst = append(dst, addr[:]...)
		dst = le.AppendUint64(dst, e.to)
		dst = le.AppendUint32(dst, uint32(e.rest>>32))
		flags := byte(0)
		for _, f := range [...]struct {
			set  bool
			flag byte
		}{{e.isAnonymous(), stateAnonymous}, {e.alias, stateAlias}, {e.proven, stateProven}} {
			if f.set {
				flags |= f.flag
			}
		}
		dst = append(dst, byte(e.rest>>16), e.space.width(), flags)
		dst = le.AppendUint32(dst, e.head)
		dst = le.AppendUint64(dst, uint64(e.since))
		dst = le.AppendUint64(dst, uint64(e.last))
	}
	return dst
}

// ErrState is what is wrong with a state that AppendState did not write.
var ErrState = errors.New("sequence: no state of exporters")

// ReadState makes the exporters known whose state AppendState wrote. Those that are known already, and those for which
// there is no place, are left out. How far their numbers went on in between, up to Config.MaxGap, was missed while no
// collector ran, or was seen by one that ended before it could tell. What AppendState does not write is refused, and then
// nothing is changed.
func (t *Tracker) ReadState(b []byte) error {
	return t.ReadStateOf(b, func(*decode.Addr) bool { return true })
}

// ReadStateOf is ReadState of the addresses that mine names, for trackers that share the exporters among them.
func (t *Tracker) ReadStateOf(b []byte, mine func(*decode.Addr) bool) error {
	if len(b) == 0 || b[0] != stateVersion {
		return fmt.Errorf("%w: unknown version", ErrState)
	}
	if b = b[1:]; len(b)%stateBytes != 0 {
		return fmt.Errorf("%w: cut short", ErrState)
	}
	for i := 0; i < len(b); i += stateBytes {
		if err := t.readExporter(b[i:][:stateBytes], nil); err != nil {
			return fmt.Errorf("%w, exporter %d", err, i/stateBytes)
		}
	}
	for i := 0; i < len(b); i += stateBytes {
		_ = t.readExporter(b[i:][:stateBytes], mine) // was found right
	}
	return nil
}

// readExporter makes an exporter known if it is mine. Without mine it only looks whether b is right.
func (t *Tracker) readExporter(b []byte, mine func(*decode.Addr) bool) error {
	le := binary.LittleEndian
	addr := decode.Addr(b)
	node, hwID, width, flags := le.Uint32(b[24:]), b[28], b[29], b[30]
	head := le.Uint32(b[31:])
	if width == 0 || width > 32 || head > ^uint32(0)>>(32-width) || flags > stateAnonymous|stateAlias|stateProven ||
		flags&stateAnonymous != 0 && (flags&stateAlias == 0 || node != 0) {
		return ErrState
	}
	if mine == nil || !mine(&addr) {
		return nil
	}
	sp := newSpace(&addr, le.Uint64(b[16:]), node, hwID, width)
	if flags&stateAnonymous != 0 {
		sp = sp.nameless()
	}
	alias := flags&stateAlias != 0
	if t.slot(sp).entry != 0 || alias && t.slot(sp.nameless()).entry != 0 || len(t.entries) == cap(t.entries) {
		return nil
	}
	if !t.places.take() {
		return nil
	}
	since, last := int64(le.Uint64(b[35:])), int64(le.Uint64(b[43:]))
	proven := flags&stateProven != 0
	t.entries = append(t.entries, entry{
		space: sp, alias: alias, proven: proven, times: 2, since: since, last: last,
		sequence: sequence{
			width: width, seen: t.room.record(), head: head, started: true, resumed: true, trusted: proven,
			wait: t.room.least(), aged: head, ageHead: head, ageTime: last,
		},
	})
	i := uint32(len(t.entries) - 1)
	if t.runs > 0 {
		t.entries[i].told = newTelling(t.runs, head, t.room.longest)
	}
	if proven {
		t.proven++
		t.entries[i].windows = provenWindows
	} else {
		t.guests = append(t.guests, i)
	}
	t.name(i)
	return nil
}
