package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/state"
)

func exampleMember() *Member {
	return &Member{
		Role: Consumer, Name: "store-1.example", Boot: 1<<64 - 1, Version: "v0.9.0", Start: 100, Updated: 200, Window: 150,
		Rate: 1234.5, Lag: 3, Spool: 1 << 30, Pages: []string{"http://127.0.0.1:8080/"}, Faults: []string{"influx: down"}, Stores: []string{"influx"},
		Run: &Balance{Sink: "kafka", Received: 10, Stored: 7, InFlight: map[string]uint64{"window": 2}, Dropped: map[string]uint64{"kernel": 1}},
		Parts: []Account{{
			Topic: fleet.Windows, Partition: 3, Generation: 4, Offset: 99, Held: true, Window: 150, Open: 1, Lag: 3,
			Taken: 100, Dropped: map[string]uint64{DroppedLate: 5}, Stored: map[string]uint64{"influx": 90}, Refused: map[string]uint64{"influx": 1},
			Late: 1, Duplicates: 2, Conflicts: 3,
		}},
		Rebalances: 2,
	}
}

func TestMember(t *testing.T) {
	m := exampleMember()
	b := m.Append(nil)
	got, err := ReadMember(MemberKey(m.Role, m.Name), b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("ReadMember = %+v, %v; want %+v", got, err, m)
	}
	later := append([]byte(`{"of_a_later_version":[1,{}],`), b[1:]...)
	if got, err := ReadMember(MemberKey(m.Role, m.Name), later); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("with a field of a later version: %+v, %v", got, err)
	}
	for n := range b {
		_, err := ReadMember(MemberKey(m.Role, m.Name), b[:n])
		var at *memberError
		if !errors.As(err, &at) || at.Offset > int64(n) {
			t.Fatalf("cut at %d: error %v", n, err)
		}
	}
}

// Records that no member would write are refused, with the field's name.
func TestMemberRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Member)
		field  string
		err    error
	}{
		{func(m *Member) { m.Name = "another" }, "name", errKey},
		{func(m *Member) { m.Role = Collector }, "name", errKey},
		{func(m *Member) { m.Version = strings.Repeat("v", maxText+1) }, "version", errLong},
		{func(m *Member) { m.Version = "v1\x1b[2J" }, "version", state.ErrRange},
		{func(m *Member) { m.Rate = -1 }, "reports_per_second", state.ErrRange},
		{func(m *Member) { m.Window = -1 }, "window_ns", state.ErrRange},
		{func(m *Member) { m.Faults = make([]string, maxList+1) }, "problems", errLong},
		{func(m *Member) { m.Run.Received++ }, "run", errBalance},
		{func(m *Member) { m.Run.InFlight["ring"] = 1<<64 - 1; m.Run.Received-- }, "run", state.ErrRange},
		{func(m *Member) { m.Parts[0].Topic = "windows\n" }, "partitions", state.ErrRange},
		{func(m *Member) { m.Parts[0].Partition = fleet.MaxSlices }, "partitions", state.ErrRange},
		{func(m *Member) { m.Parts[0].Dropped[DroppedLate] = 101 }, "partitions", state.ErrRange},
		{func(m *Member) { m.Parts[0].Stored["influx"] = 95 }, "partitions", errBalance},
		{func(m *Member) { m.Parts[0].Refused["parquet"] = 1 }, "partitions", errBalance},
		{func(m *Member) { m.Parts = make([]Account, 2*fleet.MaxSlices+2) }, "partitions", errLong},
	} {
		m := exampleMember()
		key := MemberKey(m.Role, m.Name)
		c.change(m)
		_, err := ReadMember(key, m.Append(nil))
		var at *memberError
		if !errors.As(err, &at) || at.Field != c.field || !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.field, err, c.err)
		}
	}
	for key, want := range map[string]error{"collector/": errMember, "collector/a/b": errMember, "stranger/x": state.ErrRange, "collector/" + strings.Repeat("x", 300): errMember} {
		if _, err := ReadMember(key, []byte("{}")); !errors.Is(err, want) {
			t.Errorf("key %.20q: %v, want %v", key, err, want)
		}
	}
	if _, err := ReadMember("collector/x", make([]byte, MaxMember+1)); !errors.Is(err, errLong) {
		t.Errorf("a long value: %v", err)
	}
	if _, err := ReadMember("collector/x", []byte(`{"role":"collector","name":"x"} {}`)); !errors.Is(err, errJSON) {
		t.Errorf("two values: %v", err)
	}
}

func TestRoster(t *testing.T) {
	var r Roster
	m := exampleMember()
	c := &Member{Role: Collector, Name: "a"}
	params := Params{Name: "fleet", Slices: 16, Window: 1e9, Seed: "x", Codes: 1, Version: 1}
	value, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []struct {
		key   string
		value []byte
		ok    bool
	}{
		{ParamsKey, value, true},
		{ParamsKey, []byte(`{"slices":0}`), false},
		{MemberKey(m.Role, m.Name), m.Append(nil), true},
		{MemberKey(m.Role, m.Name), []byte(`{"role":"consumer"`), false},
		{"collector/a", c.Append(nil), true},
		{"collector/gone", (&Member{Role: Collector, Name: "gone"}).Append(nil), true},
		{"collector/gone", nil, true},
		{RedrawKey("a"), []byte(`{"boot":"18446744073709551615"}`), true},
		{RedrawKey("b"), []byte(`{"boot":1}`), false},
		{"later/key", []byte("x"), true},
	} {
		if err := r.Add(record.key, record.value); (err == nil) != record.ok {
			t.Errorf("%s %.40s: %v", record.key, record.value, err)
		}
	}
	if got := r.Members(); len(got) != 2 || !reflect.DeepEqual(got[0], c) || !reflect.DeepEqual(got[1], m) {
		t.Errorf("members: %+v", got)
	}
	c.Boot, c.Since, c.Window, c.Left = 5, 20, 30, true
	if err := r.Add("collector/a", c.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.Expected(), []fleet.Expected{{Name: "a", Boot: 5, Since: 20, Until: 30}}; !reflect.DeepEqual(got, want) {
		t.Errorf("expected are %+v, want %+v", got, want)
	}
	if !reflect.DeepEqual(r.Params(), &params) || r.redraw("a") != 1<<64-1 || r.redraw("b") != 0 {
		t.Errorf("params %+v, redraw %d", r.Params(), r.redraw("a"))
	}
}

// adds reports whether a ledger adds up.
func adds(b *Balance) bool {
	flight, err1 := total(b.InFlight)
	dropped, err2 := total(b.Dropped)
	return err1 == nil && err2 == nil && b.Received == b.Stored+flight+dropped
}

// One report that goes each way, and the sum that has them all.
func TestLedger(t *testing.T) {
	members := []*Member{
		{Role: Collector, Name: "a", Run: &Balance{Received: 1}, // all_runs is the one that counts
			All: &Balance{Received: 1000, Stored: 900, InFlight: map[string]uint64{"window": 60, "spool": 20}, Dropped: map[string]uint64{"kernel": 15, droppedDown: 5}}},
		{Role: Collector, Name: "b", Run: &Balance{Received: 500, Stored: 500}},
		{Role: Consumer, Name: "x", Parts: []Account{
			{Topic: fleet.Windows, Partition: 0, Generation: 2, Offset: 50, Taken: 700, Dropped: map[string]uint64{DroppedLate: 10}, Down: 3, Stored: map[string]uint64{"influx": 600, "jsonl": 690}, Refused: map[string]uint64{"influx": 30}},
			{Topic: fleet.Windows, Partition: 1, Generation: 1, Offset: 90, Taken: 11111, Stored: map[string]uint64{"influx": 11111}}, // lost it to y
			{Topic: fleet.RawReports, Partition: 0, Generation: 2, Offset: 5, Taken: 200, Passed: 150, Dropped: map[string]uint64{DroppedBroken: 4}},
		}},
		{Role: Consumer, Name: "y", Parts: []Account{
			{Topic: fleet.Windows, Partition: 1, Generation: 2, Offset: 10, Taken: 100, Stored: map[string]uint64{"influx": 100, "jsonl": 0}},
		}},
	}
	got := Ledger(members)
	// Kafka confirmed 1400. 200 of them were read as reports, of which 150 came back; 800 were merged.
	flight := map[string]uint64{"window": 60, "spool": 20, inKafka: 1400 - 200 + 150 - 800, inReports: 46}
	// Reports that a collector missed while it was down count by the numbers of all collectors together.
	dropped := map[string]uint64{"kernel": 15, droppedDown: 3, DroppedLate: 10, DroppedBroken: 4}
	influx := Balance{Sink: "influx", Received: 1498, Stored: 700, InFlight: maps.Clone(flight), Dropped: maps.Clone(dropped)}
	influx.InFlight[inConsumer], influx.Dropped[droppedRejected] = 60, 30
	jsonl := Balance{Sink: "jsonl", Received: 1498, Stored: 690, InFlight: flight, Dropped: dropped}
	jsonl.InFlight[inConsumer] = 100
	want := books{Balances: []Balance{influx, jsonl}, lost: map[string]uint64{"a": 5}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Ledger = %+v\nwant %+v", got, want)
	}
	for i := range got.Balances {
		if !adds(&got.Balances[i]) {
			t.Errorf("%+v does not add up", got.Balances[i])
		}
	}
}

func TestMemberWithoutARate(t *testing.T) {
	for _, rate := range []float64{math.NaN(), math.Inf(1)} {
		m := Member{Role: Collector, Name: "a", Boot: 1, Rate: rate}
		if got, err := ReadMember(MemberKey(Collector, "a"), m.Append(nil)); err != nil || got.Rate != 0 || !(m.Rate != 0) {
			t.Errorf("a rate of %v: %+v, %v", rate, got, err)
		}
	}
}

func TestLedgerEmpty(t *testing.T) {
	if got := Ledger(nil); !reflect.DeepEqual(got, books{Balances: []Balance{{}}, lost: map[string]uint64{}}) {
		t.Errorf("of nobody: %+v", got)
	}
	got := Ledger([]*Member{{Role: Collector, Name: "a", Run: &Balance{Received: 5, Stored: 5}}})
	if want := (Balance{Received: 5, InFlight: map[string]uint64{inKafka: 5}}); !reflect.DeepEqual(got.Balances, []Balance{want}) {
		t.Errorf("without consumers: %+v, want all in Kafka", got.Balances)
	}
}

// A consumer's word that is newer than a collector's takes reports from where the collector saw them last.
func TestLedgerAhead(t *testing.T) {
	members := []*Member{
		{Role: Collector, Name: "a", Run: &Balance{Received: 100, Stored: 50, InFlight: map[string]uint64{"window": 40, "ring": 10}}},
		{Role: Consumer, Name: "x", Parts: []Account{{Topic: fleet.Windows, Generation: 1, Taken: 95, Stored: map[string]uint64{"": 95}}}},
	}
	got := Ledger(members)
	if b := got.Balances[0]; got.Ahead != 0 || b.Received != 100 || b.InFlight["window"] != 0 || b.InFlight["ring"] != 5 || !adds(&b) {
		t.Errorf("within what was received: %+v", got)
	}
	members[1].Parts[0].Taken, members[1].Parts[0].Stored[""] = 130, 130
	got = Ledger(members)
	if b := got.Balances[0]; got.Ahead != 30 || b.Received != 130 || b.Stored != 130 || !adds(&b) {
		t.Errorf("beyond it: %+v", got)
	}
}

// Reports of missing records are broken, except for those that their collector could not send and accounts for. Single
// reports of a killed run that Kafka had are not lost, though no collector counted their numbers.
func TestLedgerUnread(t *testing.T) {
	windows := Account{Topic: fleet.Windows, Taken: 70, Stored: map[string]uint64{"": 70}, Unread: map[string]uint64{"a": 30, "gone": 7}, Down: 12}
	raw := Account{Topic: fleet.RawReports, Taken: 20, Passed: 20, Recovered: 5}
	members := []*Member{
		{Role: Collector, Name: "a", Run: &Balance{Received: 110, Stored: 90, Dropped: map[string]uint64{"spool": 18, "kernel": 2}}},
		{Role: Consumer, Name: "x", Parts: []Account{windows, raw}},
	}
	want := Balance{
		Received: 110 + 7, Stored: 70, InFlight: map[string]uint64{inKafka: 1, inConsumer: 0},
		Dropped: map[string]uint64{"spool": 18, "kernel": 2, DroppedBroken: 12 + 7, droppedDown: 7},
	}
	got := Ledger(members)
	b := got.Balances[0]
	if !adds(&b) || !reflect.DeepEqual(b, want) {
		t.Errorf("%+v, want %+v", b, want)
	}
	// Without a word of any collector it adds up, too.
	if b := Ledger(members[1:]).Balances[0]; !adds(&b) || b.Dropped[DroppedBroken] != 37 {
		t.Errorf("consumers alone: %+v", b)
	}
}

// A run that was killed, or left a spool, and the run after it.
func TestBalanceAfter(t *testing.T) {
	old := Balance{Received: 100, Stored: 60, InFlight: map[string]uint64{"window": 25, "spool": 10}, Dropped: map[string]uint64{"kernel": 5}}
	for _, c := range []struct{ carried, down uint64 }{{0, 35}, {10, 25}, {35, 0}, {50, 0}} {
		next := old.after(c.carried)
		if next.Dropped[droppedDown] != c.down || len(next.InFlight) != 0 || !adds(&next) {
			t.Errorf("carried %d: %+v, want %d lost", c.carried, next, c.down)
		}
		run := Balance{Received: c.carried + 7, Stored: c.carried, InFlight: map[string]uint64{"window": 7}}
		next.Add(&run)
		if want := 100 + 7 + max(c.carried, 35) - 35; next.Received != want || !adds(&next) {
			t.Errorf("carried %d and the next run: %+v, want %d received", c.carried, next, want)
		}
	}
	if old.Dropped[droppedDown] != 0 {
		t.Error("After changed the old balance")
	}
}

// In this fleet reports move a step at a time, members write accounts at any time, and partitions change hands. The
// ledger adds up at every moment. When all have written and all is stored it shows just that.
func TestLedgerAlways(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	type part struct {
		Account
		owner int
	}
	collectors, consumers := make([]*Member, 5), make([]*Member, 3)
	balances := make([]Balance, len(collectors))
	for i := range collectors {
		balances[i].InFlight, balances[i].Dropped = map[string]uint64{}, map[string]uint64{}
		collectors[i] = &Member{Role: Collector, Name: fmt.Sprint("c", i)}
	}
	parts := make([]part, 8)
	waiting := make([]uint64, len(parts)) // in Kafka, by partition
	for i := range parts {
		parts[i].Account = Account{Topic: fleet.Windows, Partition: uint32(i), Stored: map[string]uint64{"influx": 0}, Dropped: map[string]uint64{}}
		if i >= 6 {
			parts[i].Topic = fleet.RawReports
		}
	}
	for i := range consumers {
		consumers[i] = &Member{Role: Consumer, Name: fmt.Sprint("s", i)}
	}
	say := func(i int) {
		b := balances[i]
		b.InFlight, b.Dropped = maps.Clone(b.InFlight), maps.Clone(b.Dropped)
		collectors[i].All = &b
	}
	emit := func(k int) {
		consumers[k].Parts = nil
		for i := range parts {
			if p := &parts[i]; p.owner == k {
				a := p.Account
				a.Stored, a.Dropped = maps.Clone(a.Stored), maps.Clone(a.Dropped)
				consumers[k].Parts = append(consumers[k].Parts, a)
			}
		}
	}
	members := func() (list []*Member) {
		for _, m := range append(slices.Clone(collectors), consumers...) {
			got, err := ReadMember(MemberKey(m.Role, m.Name), m.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, got)
		}
		return list
	}
	step := func(last bool) {
		i, p := rng.IntN(len(collectors)), rng.IntN(len(parts))
		b, a := &balances[i], &parts[p]
		n := func(most uint64) uint64 {
			if last {
				return most
			}
			return rng.Uint64N(most + 1)
		}
		if !last {
			k := uint64(rng.IntN(1000))
			b.Received += k
			b.InFlight["window"] += k
			k = n(b.InFlight["window"]) / 8
			b.InFlight["window"] -= k
			b.Dropped["shard-queue"] += k
		}
		k := n(b.InFlight["window"])
		b.InFlight["window"] -= k
		b.Stored += k
		waiting[p] += k
		k = n(waiting[p])
		waiting[p] -= k
		a.Taken += k
		a.Offset++
		rest := a.Taken - a.Dropped[DroppedLate]
		if a.Topic == fleet.RawReports {
			k = n(rest - a.Passed)
			a.Passed += k
			waiting[rng.IntN(6)] += k
		} else {
			a.Stored["influx"] += n(rest - a.Stored["influx"])
			if !last {
				a.Dropped[DroppedLate] += n(a.Taken-a.Dropped[DroppedLate]-a.Stored["influx"]) / 4
			}
		}
		switch rng.IntN(4) {
		case 0:
			say(i)
		case 1:
			emit(rng.IntN(len(consumers)))
		case 2:
			a.Generation++
			a.owner = rng.IntN(len(consumers))
			emit(a.owner)
		}
	}
	for range 3000 {
		step(false)
		got := Ledger(members())
		for i := range got.Balances {
			if !adds(&got.Balances[i]) {
				t.Fatalf("%+v does not add up", got.Balances[i])
			}
		}
	}
	for range 3000 {
		step(true)
	}
	for i := range collectors {
		say(i)
	}
	for k := range consumers {
		emit(k)
	}
	var received uint64
	for i := range balances {
		received += balances[i].Received
	}
	got := Ledger(members())
	flight, _ := total(got.Balances[0].InFlight)
	if len(got.Balances) != 1 || got.Ahead != 0 || flight != 0 || got.Balances[0].Received != received || received == 0 {
		t.Errorf("at the end %+v, want all of %d stored or dropped", got, received)
	}
}

func FuzzMember(f *testing.F) {
	m := exampleMember()
	f.Add(m.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadMember("consumer/store-1.example", b)
		if err != nil {
			return
		}
		got, err := ReadMember("consumer/store-1.example", m.Append(nil))
		if err != nil {
			t.Fatalf("%s became %v", m.Append(nil), err)
		}
		totals := Ledger([]*Member{got})
		for i := range totals.Balances {
			if !adds(&totals.Balances[i]) {
				t.Fatalf("%+v does not add up", totals.Balances[i])
			}
		}
	})
}
