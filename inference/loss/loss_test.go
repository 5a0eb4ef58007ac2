package loss

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// event is a report of a packet.
type event struct {
	at     int64
	id     uint16
	sender int
}

// play passes reports to a flow in the order of their times, and takes what was settled every second.
func play(f *Flow, events []event, until int64) (sum count) {
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	next := int64(1e9)
	receive := func() {
		c := f.Cut(next)
		sum.Packets += c.Packets
		sum.Lost += c.Lost
		next += 1e9
	}
	for _, e := range events {
		for e.at >= next {
			receive()
		}
		if e.sender == 0 {
			f.Entered(e.id, e.at)
		} else {
			f.Left(e.id, e.at)
		}
	}
	for next <= until+4e9 {
		receive()
	}
	return sum
}

// A slow flow is compared packet by packet: what is lost is counted, exactly, whether reports come late, overtake each
// other or come twice.
func TestFlowCountsEveryLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var events []event
		var want count
		rate, ratio := 1+r.Float64()*20, []float64{0, .01, .3, 1}[r.IntN(4)]
		at, id := 0.0, uint16(r.Uint32())
		for at < 60e9 {
			at += r.ExpFloat64() * 1e9 / rate
			id++
			left := int64(at) + r.Int64N(800e6) - 20e6 // the last switch's report can overtake the first one's
			entered := int64(at)
			events = append(events, event{entered, id, 0})
			if want.Packets++; want.Packets == 1 { // nothing is compared before a packet that both report
				left = int64(at) + 1
				at += 1e9
			}
			if r.IntN(10) == 0 {
				events = append(events, event{entered + r.Int64N(50e6), id, 0})
			}
			if want.Packets > 1 && r.Float64() < ratio {
				want.Lost++
				continue
			}
			events = append(events, event{left, id, 1})
			if r.IntN(10) == 0 {
				events = append(events, event{left + r.Int64N(50e6), id, 1})
			}
		}
		var f Flow
		if got := play(&f, events, int64(at)+1e9); got != want {
			t.Fatalf("rate %.1f, ratio %v: %+v, want %+v", rate, ratio, got, want)
		}
	}
}

// Of a fast flow a share is compared, which the flow chooses so that all of it can be held. A loss is as likely to be
// in it as not, and no packet that arrived is counted as lost.
func TestFlowThinsOut(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, rate := range []float64{100, 3000, 20_000} {
		for _, ratio := range []float64{0, .1} {
			var events []event
			id := uint16(0)
			for at := 0.0; at < 20e9; at += 1e9 / rate {
				id++
				events = append(events, event{int64(at), id, 0})
				if r.Float64() >= ratio {
					events = append(events, event{int64(at) + 1e6 + r.Int64N(100e6), id, 1})
				}
			}
			var f Flow
			got := play(&f, events, 20e9)
			if got.Packets < 100 || got.Packets > uint32(20*2*ring) {
				t.Errorf("%v packets a second: %d compared", rate, got.Packets)
			}
			want := ratio * float64(got.Packets)
			if diff := float64(got.Lost) - want; diff*diff > 30*want*(1-ratio) {
				t.Errorf("%v packets a second, ratio %v: %+v", rate, ratio, got)
			}
		}
	}
}

// Reports of one side alone show nothing. They are of flows that are not compared, or of times before both saw the
// first packet. Others are of packets that the first switch did not report or whose report was lost.
func TestFlowOfOneSide(t *testing.T) {
	var source, sink, constant Flow
	var entered, left, same []event
	for i := range 1000 {
		at := int64(i) * 50e6
		entered = append(entered, event{at, uint16(i), 0})
		left = append(left, event{at, uint16(i), 1})
		same = append(same, event{at, 0, 0}, event{at + 1e6, 0, 1})
	}
	if c := play(&source, entered, 50e9); c != (count{}) {
		t.Errorf("the first switch alone: %+v", c)
	}
	if c := play(&sink, left, 50e9); c != (count{}) {
		t.Errorf("the last switch alone: %+v", c)
	}
	if c := play(&constant, same, 50e9); c.Lost > 0 {
		t.Errorf("the same identification in all packets: %+v", c)
	}
}

// tail is the sum of the exact probabilities.
func TestTail(t *testing.T) {
	for _, p := range []float64{1e-5, .01, .3} {
		for _, n := range []uint64{1, 5, 40, 300} {
			pmf := make([]float64, n+1)
			pmf[0] = 1
			for i := uint64(0); i < n; i++ { // one packet after the other
				for k := i + 1; k > 0; k-- {
					pmf[k] = pmf[k]*(1-p) + pmf[k-1]*p
				}
				pmf[0] *= 1 - p
			}
			for x := uint64(0); x <= n; x++ {
				want := 0.0
				for k := n; k >= x && k <= n; k-- {
					want += pmf[k]
				}
				got := Tail(x, n, p)
				if float64(x) >= float64(n)*p && math.Abs(got-want) > 1e-9*want+1e-300 {
					t.Errorf("Tail(%d, %d, %v) = %v, want %v", x, n, p, got, want)
				}
			}
		}
	}
}

// fabric returns the ways of flows over a fat-tree of four pods, by number of the link.
func fabric(r *rand.Rand, flows int) (samples []Sample, links int) {
	index := map[[2]int]int32{}
	link := func(a, b int) int32 {
		k := [2]int{a, b}
		if _, ok := index[k]; !ok {
			index[k] = int32(len(index))
		}
		return index[k]
	}
	for range flows {
		src, dst := r.IntN(8), r.IntN(8)
		for src == dst {
			dst = r.IntN(8)
		}
		up, core := r.IntN(2), r.IntN(2)
		agg, down := 8+src/2*2+up, 8+dst/2*2+up
		s := Sample{Packets: uint64(20 + r.IntN(2000))}
		if src/2 == dst/2 {
			s.Links = []int32{link(src, agg), link(agg, dst)}
		} else {
			c := 16 + 2*up + core
			s.Links = []int32{link(src, agg), link(agg, c), link(c, down), link(down, dst)}
		}
		samples = append(samples, s)
	}
	return samples, len(index)
}

func binomial(r *rand.Rand, n uint64, p float64) (k uint64) {
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// Losses at the floor, and below it, are no culprit.
func TestFitFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 100 {
		samples, links := fabric(r, 150)
		floor := []float64{2e-5, 1e-3}[r.IntN(2)]
		for i := range samples {
			samples[i].Lost = binomial(r, samples[i].Packets, floor)
		}
		if c := fit(samples, links, floor); len(c) > 0 {
			t.Fatalf("of nothing: %+v", c)
		}
	}
}

// One, two or three links that lose packets, and a flow that loses all, are found, and nothing else.
func TestFitFindsWhatLoses(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for round := range 72 {
		samples, links := fabric(r, 200)
		rate := map[int32]float64{}
		for range round % 4 {
			rate[int32(r.IntN(links))] = []float64{.01, .05, .3}[r.IntN(3)]
		}
		black := int32(-1)
		if round%3 == 0 {
			black = int32(r.IntN(len(samples)))
		}
		for i := range samples {
			s := &samples[i]
			for _, l := range s.Links {
				s.Lost += binomial(r, s.Packets-s.Lost, rate[l])
			}
			if int32(i) == black {
				s.Lost = s.Packets
			}
		}
		got := fit(samples, links, 2e-5)
		for _, c := range got {
			want, known := rate[c.Link]
			switch {
			case c.Flow >= 0 && c.Flow != black, c.Link >= 0 && !known:
				t.Fatalf("round %d: %+v is found, and nothing is wrong there; links %v, flow %d", round, c, rate, black)
			case c.Link >= 0 && (c.Ratio < want/2 || c.Ratio > 2*want), c.Chance > falseAlarm, c.Confidence < .9:
				t.Errorf("round %d: %+v, want a ratio of %v", round, c, want)
			}
		}
		if black >= 0 && !slices.ContainsFunc(got, func(c Culprit) bool { return c.Flow == black }) {
			t.Errorf("round %d: %+v without flow %d", round, got, black)
		}
		for l, want := range rate {
			alone := 0.0 // losses that nothing else that is wrong explains
			for i := range samples {
				others := slices.ContainsFunc(samples[i].Links, func(o int32) bool { return o != l && rate[o] > 0 })
				if slices.Contains(samples[i].Links, l) && !others && int32(i) != black {
					alone += want * float64(samples[i].Packets)
				}
			}
			if alone > 40 && !slices.ContainsFunc(got, func(c Culprit) bool { return c.Link == l }) {
				t.Errorf("round %d: %+v without link %d, %v", round, got, l, rate)
			}
		}
	}
}

// Losses of packets that cross several links of a switch, of which some lose packets, are explained by these links. If
// all do, they are explained by the one place behind all of them.
func TestFitExchanges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for round := range 60 {
		lossy := 1 + round%4 // of the four links 0 to 3 before link 4
		rate := []float64{.05, .3, .9}[round%3]
		var samples []Sample
		for i := range 32 {
			s := Sample{Links: []int32{int32(i % 4), 4}, Packets: 60}
			if i%4 < lossy {
				s.Lost = binomial(r, s.Packets, rate)
			}
			samples = append(samples, s, Sample{Links: []int32{5}, Packets: 60})
		}
		want := []int32{4}
		if lossy < 4 {
			want = []int32{0, 1, 2}[:lossy]
		}
		var got []int32
		for _, c := range fit(samples, 6, 2e-5) {
			got = append(got, c.Link)
			if c.Ratio < rate/2 || c.Ratio > 2*rate {
				t.Errorf("round %d: %+v, want a ratio of %v", round, c, rate)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("round %d: links %v, want %v", round, got, want)
		}
	}
}

// A flow that loses all of a few packets is not published yet, and no link on its way is blamed for them.
func TestFitBlamesNoLinkForAFlow(t *testing.T) {
	for lost := uint64(4); lost <= 20; lost++ {
		got := fit([]Sample{
			{Links: []int32{0, 1, 2}, Packets: lost, Lost: lost}, {Links: []int32{3, 1, 4}, Packets: 15}, {Links: []int32{0, 5, 4}, Packets: 25},
			{Links: []int32{3, 5, 2}, Packets: 40},
		}, 6, 2e-5)
		if lost < blackLost && len(got) > 0 || lost >= blackLost && (len(got) != 1 || got[0].Flow != 0) {
			t.Errorf("%d lost: %+v", lost, got)
		}
	}
}

// Links that the same flows cross share the confidence.
func TestFitDistinguishesTwins(t *testing.T) {
	samples := []Sample{
		{Links: []int32{0, 1, 2}, Packets: 1000, Lost: 20}, {Links: []int32{0, 1, 3}, Packets: 1000, Lost: 25},
		{Links: []int32{2}, Packets: 1000}, {Links: []int32{3}, Packets: 1000},
	}
	got := fit(samples, 4, 2e-5)
	if len(got) != 1 || got[0].Link != 0 || math.Abs(got[0].Confidence-.5) > 1e-6 {
		t.Errorf("%+v, want link 0 or 1, each with a confidence of one half", got)
	}
}

func TestNothingAllocates(t *testing.T) {
	var f Flow
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += 1e6
		f.Entered(uint16(now>>20), now)
		f.Left(uint16(now>>20), now+5e5)
		f.Cut(now)
	}); n > 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

func BenchmarkFlow(b *testing.B) {
	var f Flow
	now, id := int64(0), uint16(0)
	for b.Loop() { // both reports of a packet, fifty packets a second
		now += 20e6
		id++
		f.Entered(id, now)
		f.Left(id, now+1e6)
	}
}

// The needed number is found, one less is not, and at the floor it comes by chance as rarely as stated.
func TestNeeded(t *testing.T) {
	for _, floor := range []float64{2e-5, 1e-3} {
		for _, packets := range []uint64{500, 4000, 7000, 15_000, 60_000, 1_000_000} {
			// Flows over one link each, so that nothing else explains it.
			const flows = 75
			samples := make([]Sample, flows)
			for i := range samples {
				samples[i] = Sample{Links: []int32{int32(i)}, Packets: 1000}
			}
			samples[0].Packets = packets
			need := Needed(packets, floor, 2*flows)
			t.Logf("floor %v: %d of %d", floor, need, packets)
			for _, lost := range []uint64{need - 1, need} {
				samples[0].Lost = lost
				if got := fit(samples, flows, floor); (len(got) == 1) != (lost == need) {
					t.Errorf("floor %v: %d of %d lost, %d are needed: %+v", floor, lost, packets, need, got)
				}
			}
			if p := Tail(need, packets, floor) * 2 * flows; p > falseAlarm {
				t.Errorf("floor %v: %d of %d come by chance with %v", floor, need, packets, p)
			}
		}
	}
}
