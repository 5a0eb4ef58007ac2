package sequence

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// A tracker that reads what another one wrote goes on with its numbers: what is missing between is missed, not lost.
func TestState(t *testing.T) {
	a := New(testConfig(), 1)
	const second = int64(1e9)
	for i := range uint32(100) {
		for e := range uint32(3) {
			a.Observe(report20(e, 7, i+e*1000, int64(i)*second/10))
		}
	}
	noNode := &decode.Report{Version: decode.V05, Exporter: addr(9), Seq: 41, SeqBits: 32, FirstOfGroup: true, HWID: 3, To: 5,
		Has: decode.HasExporter | decode.HasHWID | decode.HasSeq}
	a.Observe(noNode)
	noNode.Seq++
	a.Observe(noNode)
	a.Cut(nil, 10*second)
	saved := a.AppendState([]byte("x"))[1:]
	if len(saved) != 1+4*51 {
		t.Fatalf("%d bytes of state", len(saved))
	}

	b := New(testConfig(), 2)
	if err := b.ReadState(saved, nil); err != nil {
		t.Fatal(err)
	}
	if again := b.AppendState(nil); !bytes.Equal(again, saved) {
		t.Error("the state that was read is written as another")
	}
	if err := b.ReadState(saved, nil); err != nil || b.Stats().Exporters != 4 {
		t.Errorf("read twice: %v, %+v", err, b.Stats())
	}
	at := 20 * second
	b.Observe(report20(0, 7, 99, at))   // was seen
	b.Observe(report20(0, 7, 111, at))  // 100 to 110 are missing
	b.Observe(report20(0, 7, 105, at))  // all but this one
	b.Observe(report20(0, 7, 113, at))  // 112 is lost
	b.Observe(report20(1, 7, 1100, at)) // goes on
	b.Observe(report20(1, 7, 1101, at))
	b.Observe(report20(2, 7, 3, at)) // began anew, an unknown number of times
	b.Observe(report20(2, 7, 4, at))
	noNode.Seq, noNode.Time = 45, at
	b.Observe(noNode)
	b.Settle()
	got := b.Cut(nil, 21*second)
	if len(got) != 4 {
		t.Fatalf("%d exporters", len(got))
	}
	for i, want := range []struct {
		down uint64
		lost int64
	}{{10, 1}, {0, 0}, {0, 0}, {2, 0}} {
		if e := got[i]; e.Down != want.down || e.Lost != want.lost || e.Restarts != 0 || e.Duplicated != 0 || !e.Sequenced {
			t.Errorf("exporter %d: %+v, want %d missed and %d lost", i, e, want.down, want.lost)
		}
	}
}

// The exporters of several trackers can be shared out anew.
func TestStateOf(t *testing.T) {
	a := New(testConfig(), 1)
	for i := range uint32(10) {
		for e := range uint32(20) {
			a.Observe(report20(e, e, i, int64(i)))
		}
	}
	saved := a.AppendState(nil)
	places := NewPlaces(testConfig(), 2)
	known := 0
	for k := range 2 {
		b := NewShared(testConfig(), 3, places)
		if err := b.ReadState(saved, func(a *decode.Addr) bool { return int(a[15]&1) == k }); err != nil {
			t.Fatal(err)
		}
		known += b.Stats().Exporters
	}
	if known != 20 {
		t.Errorf("%d of 20 exporters are known", known)
	}
}

// A gap after a stop that is too large for loss is none, and what AppendState does not write is refused as a whole.
func TestStateRefused(t *testing.T) {
	a := New(testConfig(), 1)
	for i := range uint32(10) {
		a.Observe(report20(1, 1, i, int64(i)))
	}
	saved := a.AppendState(nil)
	b := New(testConfig(), 1)
	for n := range saved {
		if n == 1 { // without exporters
			continue
		}
		if err := b.ReadState(saved[:n], nil); !errors.Is(err, state.ErrShort) || b.Stats().Exporters != 0 {
			t.Fatalf("the first %d bytes: %v, %d exporters", n, err, b.Stats().Exporters)
		}
	}
	if err := b.ReadState(append(saved, saved[1:]...), nil); err != nil || b.Stats().Exporters != 1 {
		t.Errorf("one exporter twice: %v, %+v", err, b.Stats())
	}
	b.Observe(report20(1, 1, 9+uint32(b.cfg.MaxGap)+1, 100))
	b.Settle()
	if got := b.Cut(nil, 200); got[0].Down != 0 || got[0].Lost != 0 || got[0].Restarts != 0 {
		t.Errorf("after too large a gap: %+v", got[0])
	}
}

// TestStateFields refuses what no tracker writes, and names the field.
func TestStateFields(t *testing.T) {
	const anonymous, alias, proven, node0, some, timed = 1, 2, 4, 8, 16, 32
	type saved struct {
		version     uint8
		node        uint32
		width       uint8
		flags       uint8
		head        uint32
		provisional uint32
		edge        uint32
	}
	for _, tt := range []struct {
		name  string
		x     saved
		field string // "" for what is read
	}{
		{"an exporter", saved{version: 1, node: 7, width: 22, head: 1<<22 - 1}, ""},
		{"all flags of a node", saved{version: 4, width: 32, flags: alias | proven | node0 | some | timed, head: 90, provisional: 3, edge: 80}, ""},
		{"no width", saved{version: 1, width: 0}, "width"},
		{"a width above 32", saved{version: 1, width: 33}, "width"},
		{"a number above its width", saved{version: 1, node: 7, width: 22, head: 1 << 22}, "number"},
		{"anonymous, and known by no node", saved{version: 1, width: 22, flags: anonymous}, "flags"},
		{"anonymous, with a node", saved{version: 1, node: 7, width: 22, flags: anonymous | alias}, "flags"},
		{"anonymous", saved{version: 1, width: 22, flags: anonymous | alias}, ""},
		{"node 0 by another id", saved{version: 1, node: 7, width: 22, flags: node0}, "flags"},
		{"node 0 that is not known", saved{version: 1, width: 22, flags: anonymous | alias | node0}, "flags"},
		{"provisional before version 2", saved{version: 1, node: 7, width: 22, flags: some, head: 9, provisional: 1}, "flags"},
		{"provisional of version 2", saved{version: 2, node: 7, width: 22, flags: some, head: 9, provisional: 1}, ""},
		{"an uptime before version 4", saved{version: 3, node: 7, width: 22, flags: timed}, "flags"},
		{"none provisional", saved{version: 2, node: 7, width: 22, flags: some, head: 9}, "provisional"},
		{"as many provisional as numbers", saved{version: 3, node: 7, width: 22, flags: some, head: 9, provisional: 9, edge: 0}, ""},
		{"more provisional than numbers", saved{version: 3, node: 7, width: 22, flags: some, head: 9, provisional: 10, edge: 0}, "provisional"},
		{"the last edge of its width", saved{version: 3, node: 7, width: 22, flags: some, head: 9, provisional: 1, edge: 1<<22 - 1}, ""},
		{"an edge above its width", saved{version: 3, node: 7, width: 22, flags: some, head: 9, provisional: 1, edge: 1 << 22}, "provisional"},
		{"an edge as far behind as can be", saved{version: 3, node: 7, width: 22, flags: some, head: 9, provisional: 1, edge: 1<<21 + 10}, ""},
		{"an edge ahead", saved{version: 3, node: 7, width: 22, flags: some, head: 9, provisional: 1, edge: 1<<21 + 9}, "provisional"},
	} {
		x, le := tt.x, binary.LittleEndian
		from := addr(1)
		b := append([]byte{x.version}, from[:]...)
		b = le.AppendUint32(le.AppendUint64(b, 0), x.node)
		b = append(b, 1, x.width, x.flags)
		b = le.AppendUint64(le.AppendUint64(le.AppendUint32(b, x.head), 100), 200)
		if x.flags&some != 0 {
			if b = le.AppendUint32(b, x.provisional); x.version >= 3 {
				b = le.AppendUint32(b, x.edge)
			}
		}
		if x.flags&timed != 0 {
			b = le.AppendUint64(le.AppendUint32(b, 5000), 150)
		}
		tr, want := New(testConfig(), 1), 1
		tr.ReportNumbers(4)
		if tt.field != "" {
			want = 0
		}
		err := tr.ReadState(b, nil)
		if wrong, is := errors.AsType[*state.Error](err); tt.field == "" && err != nil || tt.field != "" && (!is || wrong.Field != tt.field) || tr.Stats().Exporters != want {
			t.Errorf("%s: %v with %d exporters, want %q", tt.name, err, tr.Stats().Exporters, tt.field)
		}
		if e := tr.entries; tt.field == "" && x.flags&timed != 0 && (e[0].uptime != 5000 || e[0].upAt != 150 || !e[0].proven || tr.proven != 1 || e[0].windows != provenWindows || len(tr.guests) > 0) {
			t.Errorf("%s: %+v", tt.name, e[0])
		}
		if tt.field == "" { // from the first provisional number, or as many before the newest one, up to that
			var gaps []stretch
			switch {
			case x.provisional > 0 && x.version < 3:
				gaps = []stretch{{x.head - x.provisional, x.provisional + 1}}
			case x.provisional > 0:
				gaps = []stretch{{x.edge, (x.head-x.edge)&(1<<x.width-1) + 1}}
			}
			if !slices.Equal(tr.entries[0].log.gaps, gaps) {
				t.Errorf("%s: gaps %v, want %v", tt.name, tr.entries[0].log.gaps, gaps)
			}
			silent := New(testConfig(), 1)
			if err := silent.ReadState(b, nil); err != nil || silent.entries[0].log != nil {
				t.Errorf("%s: %v, with a log where numbers are not listed", tt.name, err)
			}
		}
		if tt.field == "" && x.flags&proven == 0 && (tr.proven != 0 || len(tr.guests) != 1) {
			t.Errorf("%s: %d have proven themselves, %d are guests", tt.name, tr.proven, len(tr.guests))
		}
	}
}

func FuzzReadState(f *testing.F) {
	a := New(testConfig(), 1)
	for i := range uint32(100) {
		a.Observe(report20(i%7, i%3, i, int64(i)))
	}
	f.Add(a.AppendState(nil), uint64(1))
	f.Add([]byte{stateVersion}, uint64(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		tr := New(testConfig(), seed)
		if err := tr.ReadState(b, nil); err != nil {
			if tr.Stats().Exporters != 0 {
				t.Fatal("half of it was read")
			}
			return
		}
		n := tr.Stats().Exporters
		if n > testConfig().MaxExporters || n*51 >= len(b) {
			t.Fatalf("%d exporters of %d bytes", n, len(b))
		}
		c := New(testConfig(), seed)
		if err := c.ReadState(tr.AppendState(nil), nil); err != nil || c.Stats().Exporters != n {
			t.Fatalf("written and read again: %v, %d exporters of %d", err, c.Stats().Exporters, n)
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		for i := range int64(200) {
			tr.Observe(report20(rng.Uint32N(8), rng.Uint32N(4), rng.Uint32N(2000), i))
			if i%50 == 0 {
				tr.Cut(nil, i*1e9)
			}
		}
		for i := range tr.entries {
			check(t, &tr.entries[i].sequence, &room{longest: tr.room.longest, places: &Places{}})
		}
	})
}

// A tracker that lists numbers also lists those that the run before did not account for. They reach from its first
// provisional number to the last one before its own first. Late ones among them are listed, too.
func TestStateGaps(t *testing.T) {
	a := New(testConfig(), 1)
	const second = int64(1e9)
	for _, n := range []uint32{1, 2, 3, 6, 7, 9, 10} { // 4, 5 and 8 are provisional
		a.Observe(report20(1, 7, n, second))
	}
	a.Cut(nil, 2*second)
	saved := a.AppendState(nil)
	b := New(testConfig(), 2)
	b.ReportNumbers(16)
	if err := b.ReadState(saved, nil); err != nil {
		t.Fatal(err)
	}
	type gap struct{ width, first, count uint32 }
	window := func(end int64) (gaps []gap, numbers int) {
		var p window.Partial
		b.Cut(nil, end)
		b.Numbers(&p)
		for _, g := range p.Gaps() {
			if g.Addr == addr(1) {
				gaps = append(gaps, gap{uint32(g.Width), g.First, g.Count})
			}
		}
		for _, n := range p.Numbers() {
			for _, r := range n.Runs {
				numbers += int(r.Count)
			}
		}
		return gaps, numbers
	}
	first, _ := window(3 * second)
	b.Observe(report20(1, 7, 8, 4*second)) // was provisional
	b.Observe(report20(1, 7, 15, 4*second))
	then, numbers := window(5 * second)
	b.Observe(report20(1, 7, 17, 6*second))
	after, _ := window(7 * second)
	const width = 22
	if want := []gap{{width, 4, 7}}; !slices.Equal(first, want) {
		t.Errorf("the first window has gaps %+v, want %+v", first, want)
	}
	if want := []gap{{width, 11, 4}}; !slices.Equal(then, want) || numbers != 2 || after != nil {
		t.Errorf("gaps %+v with %d numbers, then %+v; want %+v with 2", then, numbers, after, want)
	}
	for n := range saved {
		if err := New(testConfig(), 3).ReadState(saved[:n], nil); err == nil && n != 1 { // 1 is a state of none
			t.Errorf("cut at %d of %d: no error", n, len(saved))
		}
	}
}
