package sequence

import (
	"bytes"
	"math"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// An agent that began anew is known by its uptime, wherever its numbers begin, and whatever is late, doubled or wraps
// is none.
func TestUptime(t *testing.T) {
	type step struct {
		seq, uptime uint32
		at          int64 // ms
	}
	from := func(seq, n, uptime uint32, at int64, every int) (list []step) {
		for k := range n {
			list = append(list, step{seq + k, uptime + k*uint32(every), at + int64(k)*int64(every)})
		}
		return list
	}
	join := func(parts ...[]step) (all []step) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name                                 string
		steps                                []step
		restarts, duplicated, lost, reorders int64
	}{
		{"no restart", from(1, 200, 5000, 0, 100), 0, 0, 0, 0},
		{"within 64 of its start", join(from(1, 40, 500, 0, 1000), from(1, 40, 200, 41_000, 1000)), 1, 0, 0, 0},
		{"twice", join(from(1, 40, 500, 0, 1000), from(1, 40, 200, 41_000, 1000), from(1, 90, 100, 90_000, 1000)), 2, 0, 0, 0},
		{"again and again", join(from(1, 5, 0, 0, 1000), from(1, 5, 0, 6_000, 1000), from(1, 5, 0, 12_000, 1000), from(1, 5, 0, 18_000, 1000)), 3, 0, 0, 0},
		{"its first ones are lost", join(from(1, 40, 500, 0, 1000), from(7, 40, 6000, 50_000, 1000)), 1, 0, 0, 0},
		{"far behind", join(from(5000, 40, 5e6, 0, 1000), from(1, 40, 200, 41_000, 1000)), 1, 0, 0, 0},
		{"a few, far behind", join(from(5000, 40, 5e6, 0, 1000), from(1, 3, 200, 41_000, 1000)), 1, 0, 0, 0},
		{"ahead", join(from(1, 40, 5e6, 0, 1000), from(60, 40, 200, 41_000, 1000)), 1, 0, 0, 0},
		{"after weeks", join(from(1, 40, 3e9, 0, 1000), from(1, 40, 200, 41_000, 1000)), 1, 0, 0, 0},
		{"uptime wraps", from(1, 40, math.MaxUint32-10_000, 0, 1000), 0, 0, 0, 0},
		{"uptime wraps in silence", join(from(1, 40, math.MaxUint32-50_000, 0, 1000), from(41, 40, 70_000, 120_000, 1000)), 0, 0, 0, 0},
		{"no uptime", join(from(1, 40, 0, 0, 0), from(41, 40, 0, 60_000, 0)), 0, 0, 0, 0},
		{"out of order", join(from(1, 20, 500, 0, 1000), []step{{22, 21_500, 21_000}, {21, 20_500, 21_001}}, from(23, 20, 22_500, 22_000, 1000)), 0, 0, 0, 1},
		{"out of order after the restart", join(from(1, 20, 500_000, 0, 1000), []step{{2, 900, 21_000}, {1, 100, 21_001}}, from(3, 20, 1900, 22_000, 1000)), 1, 0, 0, 1},
		{"an old one after the restart", join(from(1, 20, 500_000, 0, 1000), from(1, 1, 100, 21_000, 0), []step{{20, 519_000, 21_100}}, from(2, 3, 200, 21_200, 100)), 1, 0, 0, 0},
		{"doubled", []step{{1, 5000, 0}, {1, 5000, 1}, {2, 6000, 1000}, {2, 6000, 1001}, {1, 100, 2000}, {1, 100, 2001}, {2, 1100, 3000}, {2, 1100, 3001}}, 1, 4, 0, 0},
		{"repeated before the restart", []step{{1, 5000, 0}, {1, 5000, 1}, {1, 100, 2000}, {1, 100, 2001}, {2, 1100, 3000}}, 0, 1, 0, 0},
		{"a clock of its own", join(from(1, 40, 0, 0, 1000), from(41, 40, 20_000, 40_000, 500)), 0, 0, 0, 0},
	} {
		tr := New(DefaultConfig(), 1)
		b := new(decode.LazyBatch)
		copies := int64(0)
		for _, s := range c.steps {
			r := &decode.Report{Format: decode.SFlow, Kind: decode.KindSample, Seq: s.seq, SeqBits: 32, FirstOfGroup: true, HeaderTime: s.uptime, Time: s.at * 1e6,
				Exporter: decode.AddrFrom4([]byte{10, 0, 0, 9}), Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq | decode.HasHeaderTime}
			var in decode.Batch
			*in.Next() = *r
			b.AppendBatch(&in)
			x := b.List[len(b.List)-1]
			x.Sum = s.seq<<16 ^ s.uptime | 1
			tr.ObserveLazy(x)
			if x.Copy {
				copies++
			}
			var decided decode.LazyBatch
			tr.Decided(&decided)
			for _, r := range decided.List {
				if r.Copy {
					copies++
				}
			}
		}
		if copies != c.duplicated {
			t.Errorf("%s: %d copies, want %d", c.name, copies, c.duplicated)
		}
		tr.Settle()
		list := tr.Cut(nil, 1e15)
		if len(list) != 1 {
			t.Fatalf("%s: %+v", c.name, list)
		}
		e := list[0]
		if got := [4]int64{int64(e.Restarts), int64(e.Duplicated), e.Lost, int64(e.Reordered)}; got != [4]int64{c.restarts, c.duplicated, c.lost, c.reorders} {
			t.Errorf("%s: restarts, duplicated, lost, reordered %v, want %v", c.name, got, [4]int64{c.restarts, c.duplicated, c.lost, c.reorders})
		}
	}
}

// An agent that began anew while no collector ran is known by its uptime, too, and one that only went on is not.
func TestUptimeOfEarlierRun(t *testing.T) {
	agent := func(seq, uptime uint32, at int64) *decode.Report {
		return &decode.Report{Format: decode.SFlow, Kind: decode.KindSample, Seq: seq, SeqBits: 32, FirstOfGroup: true, HeaderTime: uptime, Time: at * 1e6,
			Exporter: decode.AddrFrom4([]byte{10, 0, 0, 9}), Has: decode.HasExporter | decode.HasNodeID | decode.HasHWID | decode.HasSeq | decode.HasHeaderTime}
	}
	for _, c := range []struct {
		name           string
		seq, uptime    uint32 // of the first datagram to the second run, a minute later
		restarts, down uint64
	}{
		{"goes on", 100, 100_000, 0, 59},
		{"began anew", 3, 20_000, 1, 0},
		{"began anew, near its old number", 41, 20_000, 1, 0},
		{"began anew, ahead", 70, 20_000, 1, 0},
		{"uptime is not of this time", 41, 2_000_000, 0, 0},
	} {
		first := New(DefaultConfig(), 1)
		for k := range uint32(40) {
			first.Observe(agent(k+1, 1000*k, int64(1000*k)))
		}
		first.Cut(nil, 40e9)
		second := New(DefaultConfig(), 2)
		if err := second.ReadState(first.AppendState(nil), nil); err != nil {
			t.Fatal(err)
		}
		for k := range uint32(20) {
			second.Observe(agent(c.seq+k, c.uptime+1000*k, 100_000+int64(1000*k)))
		}
		list := second.Cut(nil, 1e15)
		if len(list) != 1 || list[0].Restarts != c.restarts || list[0].Down != c.down || list[0].Lost != 0 || !list[0].Sequenced {
			t.Errorf("%s: %+v, want %d restarts and %d missed", c.name, list, c.restarts, c.down)
		}
		// A saved state is the same again, and goes on being saved.
		again := New(DefaultConfig(), 3)
		if err := again.ReadState(second.AppendState(nil), nil); err != nil || !bytes.Equal(again.AppendState(nil), second.AppendState(nil)) {
			t.Errorf("%s: state of the state differs: %v", c.name, err)
		}
	}
}

// TestUptimeOfOthers: the time in a report that is not of sFlow is no uptime, and one of sFlow without a time has none.
func TestUptimeOfOthers(t *testing.T) {
	for _, tt := range []struct {
		format   decode.Format
		has      decode.Field
		restarts uint64
	}{{decode.SFlow, decode.HasHeaderTime, 1}, {decode.SFlow, 0, 0}, {decode.TelemetryReport, decode.HasHeaderTime, 0}} {
		tr := New(testConfig(), 1)
		for k := range uint32(10) {
			r := report20(1, 1, 100+k, 1e15+int64(k)*1e9)
			r.Format, r.HeaderTime = tt.format, 1_000_000+1000*k
			if r.Has |= tt.has; k >= 5 {
				r.HeaderTime = 1000 * (k - 5)
			}
			tr.Observe(r)
		}
		if got := tr.Cut(nil, 2e15); got[0].Restarts != tt.restarts {
			t.Errorf("%v, with a time: %t: %d restarts, want %d", tt.format, tt.has != 0, got[0].Restarts, tt.restarts)
		}
	}
}

// TestUptimeBorders holds what is taken for a restart to its limits. 6.4 s after the datagram before, uptimes may be
// off by 1100 ms.
func TestUptimeBorders(t *testing.T) {
	const wraps = math.MaxUint32 - 999 // 1000 ms before an uptime wraps
	for _, tt := range []struct {
		name        string
		was, uptime uint32
		elapsed     int64 // ns
		began       int64 // ns before the datagram that it was seen to have begun anew; -1 is never
		anew        bool
		late        uint64
		kept        bool // the uptime before stays
	}{
		{"as long as can be since a restart", 50_000, 7400, 6.4e9, -1, true, 0, false},
		{"longer than can be since a restart", 50_000, 7401, 6.4e9, -1, false, 0, false},
		{"less by no more than the slack", 8000, 7000, 6.4e9, -1, false, 0, false},
		{"less by more than the slack", 8000, 6999, 6.4e9, -1, true, 0, false},
		{"the same again", 8000, 8000, 0, -1, false, 0, false},
		{"more than before", 500, 2000, 6.4e9, -1, false, 0, false},
		{"it wraps", wraps, 5400, 6.4e9, -1, false, 0, false},
		{"it wraps, late", wraps, 6500, 6.4e9, -1, false, 0, false},
		{"too late for that", wraps, 6501, 6.4e9, -1, true, 0, false},
		{"it wraps, early", wraps, 4300, 6.4e9, -1, false, 0, false},
		{"too early for that", wraps, 4299, 6.4e9, -1, true, 0, false},
		{"ahead by no more than the slack", 5000, 12_500, 6.4e9, 1e9, false, 0, false},
		{"a clock that is wrong", 5000, 12_501, 6.4e9, -1, false, 0, true},
		{"sent before the restart", 5000, 12_501, 6.4e9, 1e9, true, 1, true},
		{"just before the restart is over", 5000, 12_501, 6.4e9, 2e9 - 1, true, 1, true},
		{"when the restart is over", 5000, 12_501, 6.4e9, 2e9, false, 0, true},
		{"a minute later", 5000, 67_000, 60e9, 1e9, false, 0, false},
		{"a little less than a minute later", 5000, 67_000, 60e9 - 1, 1e9, true, 1, true},
	} {
		tr := New(DefaultConfig(), 1)
		at := int64(1e15)
		for n := range uint32(5) {
			tr.Observe(report20(1, 1, 100+n, at))
		}
		e := &tr.entries[0]
		e.timed, e.uptime, e.upAt, e.farN, e.far[0] = true, tt.was, at, 1, 9000
		r := report20(1, 1, 7, at+tt.elapsed)
		if r.HeaderTime = tt.uptime; tt.began >= 0 {
			e.began = r.Time - tt.began
		}
		got := tr.beganAnew(e, r, 77)
		restarts, head, late, far := uint64(0), uint32(104), tt.late, uint8(1)
		if tt.anew && tt.late == 0 { // what was far away is taken for strays
			restarts, head, late, far = 1, 7, 1, 0
		}
		if got != tt.anew || e.restarts != restarts || e.head != head || e.late != late || e.farN != far || (e.uptime == tt.uptime) == (tt.kept && tt.uptime != tt.was) {
			t.Errorf("%s: %t with %d restarts, number %d, %d late, uptime %d; want %t with %d, %d, %d", tt.name, got, e.restarts, e.head, e.late, e.uptime, tt.anew, restarts, head, late)
		}
	}
}
