package ipfix

// counting is the unit that the sequence numbers of messages count. Exporters differ, so that it is learned and no
// loss is reported before.
type counting uint8

const (
	countsNothing  counting = iota // not known yet
	countsRecords                  // data records before the message: IPFIX
	countsMessages                 // NetFlow 9
	countsFields
	constant
	numCountings
)

// The evidence for a unit of an exporter: messages that agree with it and with no better one.
const (
	believed   = 3
	mostBelief = 32
	// lateMost is how many messages in a row may come late. Behind them, the exporter counts anew.
	lateMost = 8
)

// domain is an observation domain of an exporter, and its sequence of messages.
type domain struct {
	counting counting
	belief   [numCountings]uint8
	started  bool
	unknown  bool   // the last message held records that could not be counted
	records  uint32 // of the last message
	fields   uint32
	late     uint8  // messages in a row that were behind
	skip     bool   // the message at hand is none of the sequence: late, or a copy
	seq      uint32 // of the last message
	next     uint32 // number that the next record, or message, gets: those of the exporter, without the gaps that are no loss
	carried  uint32 // number of the last message with records
	carries  bool   // there was one
	moves    uint8  // how often that differed from the one before
	stays    uint8  // how often it did not
	owner    bool   // its numbers are reported under the hardware id that it has
	rates    map[uint64]uint32
}

// number returns the number of the first record of a message, and whether its records, or the message, have numbers.
// Numbers continue if no loss is known.
func (d *domain) number(seq uint32) (n uint32, records, message bool) {
	delta := seq - d.seq
	d.skip = d.started && int32(delta) < 0
	if d.late++; !d.skip {
		d.late = 0
	}
	anew := !d.started || d.skip && (int32(delta) < -1<<16 || d.late > lateMost)
	if anew {
		d.started, d.skip, d.late = true, false, 0
	} else if before := d.counting; !d.skip {
		if d.learn(delta); d.counting != before && d.counting != countsNothing { // its own numbers, as far as they go
			d.next = d.seq
			if d.counting == countsRecords && !d.unknown {
				d.next += d.records
			} else if d.counting == countsMessages {
				d.next++
			}
		}
	}
	gap := int32(0)
	switch {
	case anew && (d.counting == countsRecords || d.counting == countsMessages):
	case d.counting == countsMessages:
		gap = int32(delta - 1)
	case d.counting == countsRecords && !d.unknown:
		gap = int32(delta - d.records)
	case d.counting != countsRecords || d.skip: // how many records there were is not known
		if !d.skip {
			d.seq = seq
		}
		return 0, false, false
	}
	if d.skip = d.skip || gap < 0; d.skip { // it came late, or twice
		return d.next + uint32(gap), d.counting == countsRecords, d.counting == countsMessages
	}
	d.seq = seq
	d.next += uint32(gap)
	return d.next, d.counting == countsRecords, d.counting == countsMessages
}

// end records the content of the message of the last call of number.
func (d *domain) end(records, fields uint32, unknown bool) {
	if d.skip {
		return
	}
	switch d.records, d.fields, d.unknown = records, fields, unknown; d.counting {
	case countsRecords:
		d.next += records
	case countsMessages:
		d.next++
	}
}

// learn holds the distance of two messages against the ways of counting. Those that disagree lose where another one
// agrees: where none does, something may be lost.
func (d *domain) learn(delta uint32) {
	var agree [numCountings]bool
	agree[countsRecords] = !d.unknown && delta == d.records
	agree[countsMessages] = delta == 1
	agree[countsFields] = !d.unknown && delta == d.fields
	agree[constant] = delta == 0
	any := false
	for c := countsRecords; c < numCountings; c++ {
		any = any || agree[c]
	}
	if !any || d.records == 0 && !d.unknown { // a message without records distinguishes nothing
		return
	}
	for c := countsRecords; c < numCountings; c++ {
		switch {
		case agree[c]:
			d.belief[c] = min(d.belief[c]+1, mostBelief)
		case d.belief[c] > 0 && (c != countsRecords && c != countsFields || !d.unknown):
			d.belief[c]--
		}
	}
	best := d.counting
	for c := countsRecords; c < numCountings; c++ {
		if d.belief[c] >= believed && d.belief[c] > d.belief[best] {
			best = c
		}
	}
	d.counting = best
}
