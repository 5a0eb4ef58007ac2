package roster

import (
	"maps"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference/fleet"
)

// after returns the balance with which the run after b begins. The reports in flight at its end are dropped as
// [droppedDown], apart from those that are carried over in a spool. Add the run's own balance without them (see
// [Balance.Add]).
func (b *Balance) after(carried uint64) Balance {
	next := Balance{Sink: b.Sink, Received: b.Received, Stored: b.Stored, Dropped: maps.Clone(b.Dropped)}
	flight, _ := total(b.InFlight)
	if carried > flight { // the spool was filled after this record
		next.Received += carried - flight
		flight = carried
	}
	if lost := flight - carried; lost > 0 {
		addStage(&next.Dropped, droppedDown, lost)
	}
	if carried > 0 {
		next.Received -= carried // they are in the run's own
	}
	return next
}

// Add adds o to b.
func (b *Balance) Add(o *Balance) {
	b.Received += o.Received
	b.Stored += o.Stored
	for stage, n := range o.InFlight {
		addStage(&b.InFlight, stage, n)
	}
	for stage, n := range o.Dropped {
		addStage(&b.Dropped, stage, n)
	}
}

func addStage(stages *map[string]uint64, stage string, n uint64) {
	if *stages == nil {
		*stages = map[string]uint64{}
	}
	(*stages)[stage] += n
}

// books are the ledger of a whole fleet.
type books struct {
	// Balances has one entry a store of the consumers, ordered by name. It has one without a name as long as no
	// consumer has reported any. Each of them adds up, and all have the same Received.
	Balances []Balance
	// Ahead is the number of reports that consumers took before their collector accounted for them. Its last record is
	// older than theirs, or it was killed before it wrote one. They are in Received all the same.
	Ahead uint64
	// lost is, by collector, the number of reports that its kills and absences have cost, as far as known. It includes
	// reports that other collectors took instead. The balances have those that no collector took.
	lost map[string]uint64
}

// Ledger adds up the accounts of the members: received = stored + in flight + dropped over the whole fleet. Reports in
// Kafka that no consumer has taken are in flight. Members write their accounts at different times, so the number in
// flight is as exact as they are frequent. The sum is exact all the same.
func Ledger(members []*Member) books {
	var sent, all Balance // all collectors; Stored counts reports that Kafka confirmed
	sum := books{lost: map[string]uint64{}}
	for _, m := range members {
		b := balanceOf(m)
		if m.Role != Collector || b == nil {
			continue
		}
		sent.Add(b)
		if n := b.Dropped[droppedDown]; n > 0 {
			sum.lost[m.Name] = n
		}
	}
	// Another collector may have taken what one missed: that shows only where their numbers are merged.
	sent.Received -= sent.Dropped[droppedDown]
	delete(sent.Dropped, droppedDown)
	accounts := Accounts(members)
	broken := unread(members, accounts)

	// All stores have this in common.
	all = Balance{Received: sent.Received, InFlight: sent.InFlight, Dropped: sent.Dropped}
	down, recovered := uint64(0), uint64(0)
	kafka, raw := int64(sent.Stored)-int64(broken), int64(0)
	if broken > 0 {
		addStage(&all.Dropped, DroppedBroken, broken)
	}
	stores := map[string]bool{}
	for _, a := range accounts {
		dropped, _ := total(a.Dropped)
		switch a.Topic {
		case fleet.RawReports:
			// Passed reports are on their way through Kafka again; the rest is in the consumer or was dropped.
			recovered += a.Recovered
			raw += int64(a.Taken - a.Passed - dropped)
			kafka -= int64(a.Taken - a.Passed)
		case fleet.Windows:
			kafka -= int64(a.Taken)
			down += a.Down
			for store := range a.Stored {
				stores[store] = true
			}
		}
		for stage, n := range a.Dropped {
			addStage(&all.Dropped, stage, n)
		}
	}
	if down -= min(down, recovered); down > 0 {
		all.Received += down
		addStage(&all.Dropped, droppedDown, down)
	}
	if kafka < 0 {
		sum.Ahead = all.ahead(uint64(-kafka))
		kafka = 0
	}
	if len(accounts) > 0 || kafka > 0 {
		addStage(&all.InFlight, inKafka, uint64(kafka))
	}
	if raw > 0 {
		addStage(&all.InFlight, inReports, uint64(raw))
	}
	if len(stores) == 0 {
		stores[""] = true
	}
	if len(stores) > 1 {
		delete(stores, "") // of partitions that have had no store since the others have some
	}
	for _, store := range slices.Sorted(maps.Keys(stores)) {
		b := Balance{Sink: store, Received: all.Received, InFlight: maps.Clone(all.InFlight), Dropped: maps.Clone(all.Dropped)}
		for _, a := range accounts {
			if a.Topic != fleet.Windows {
				continue
			}
			dropped, _ := total(a.Dropped)
			rest := a.Taken - dropped
			stored, known := a.Stored[store]
			switch {
			case known:
				b.Stored += stored
				addStage(&b.InFlight, inConsumer, rest-stored-a.Refused[store])
				if n := a.Refused[store]; n > 0 {
					addStage(&b.Dropped, droppedRejected, n)
				}
			case len(a.Stored) == 0: // none has confirmed yet
				addStage(&b.InFlight, inConsumer, rest)
			default:
				addStage(&b.Dropped, droppedNoStore, rest)
			}
		}
		sum.Balances = append(sum.Balances, b)
	}
	return sum
}

// unread returns the number of reports of missing records, beside those that their collectors could not send and
// account for.
func unread(members []*Member, accounts []*Account) (n uint64) {
	missing := map[string]uint64{}
	for _, a := range accounts {
		for name, n := range a.Unread {
			missing[name] += n
		}
	}
	for _, m := range members {
		if b := balanceOf(m); m.Role == Collector && b != nil {
			for _, stage := range []string{"sink-queue", "spool", "not-encodable", "rejected"} {
				missing[m.Name] -= min(b.Dropped[stage], missing[m.Name])
			}
		}
	}
	for _, left := range missing {
		n = min(n+min(left, maxReports), maxReports)
	}
	return n
}

// balanceOf is the balance over all runs of a member, or what it has instead.
func balanceOf(m *Member) *Balance {
	if m.All != nil {
		return m.All
	}
	return m.Run
}

// ahead takes n reports out of the collectors' reports in flight, the last stages first: a consumer has taken them
// already. The rest was received after the last account of their collectors, and is returned.
func (b *Balance) ahead(n uint64) uint64 {
	for _, stage := range []string{"spool", "sink-queue", "window", "shard-queue", "ring"} {
		part := min(n, b.InFlight[stage])
		if part > 0 {
			b.InFlight[stage] -= part
			n -= part
		}
	}
	b.Received += n
	return n
}

// Accounts returns the right account of every partition that a member reports, ordered by topic and partition.
func Accounts(members []*Member) []*Account {
	type key struct {
		topic     string
		partition uint32
	}
	newest := map[key]*Account{}
	for _, m := range members {
		for i := range m.Parts {
			a := &m.Parts[i]
			k := key{a.Topic, a.Partition}
			if old := newest[k]; old == nil || a.newer(old) {
				newest[k] = a
			}
		}
	}
	list := slices.Collect(maps.Values(newest))
	slices.SortFunc(list, func(a, b *Account) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition) - int(b.Partition)
	})
	return list
}

// newer reports whether a overrides b, an account of the same partition.
func (a *Account) newer(b *Account) bool {
	if a.Generation != b.Generation {
		return a.Generation > b.Generation
	}
	return a.Offset > b.Offset
}
