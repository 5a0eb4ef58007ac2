package sink

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func randomBatch(r *rand.Rand) *Batch {
	words := []string{"", "hop", "flow", "latency_p50", "node", "17", "é\x00\n", "a long text with \"quotes\""}
	word := func() string { return words[r.IntN(len(words))] }
	b := &Batch{Reports: r.Uint64() >> r.IntN(64)}
	for range r.IntN(20) {
		p := Point{Measurement: word(), Time: int64(r.Uint64())}
		for range r.IntN(4) {
			p.Tags = append(p.Tags, Tag{word(), word()})
		}
		for range r.IntN(6) {
			switch FieldKind(r.IntN(3)) {
			case Int:
				p.Fields = append(p.Fields, IntField(word(), int64(r.Uint64())>>r.IntN(64)))
			case Float:
				p.Fields = append(p.Fields, FloatField(word(), r.NormFloat64()))
			default:
				p.Fields = append(p.Fields, StringField(word(), word()))
			}
		}
		b.Points = append(b.Points, p)
	}
	return b
}

func TestBatchRoundTrip(t *testing.T) {
	var into Batch
	for seed := range uint64(500) {
		b := randomBatch(rand.New(rand.NewPCG(seed, 2)))
		payload := AppendBatch(nil, b)
		if err := DecodeBatch(payload, &into); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if into.Reports != b.Reports || len(into.Points) != len(b.Points) || len(b.Points) > 0 && !reflect.DeepEqual(into.Points, b.Points) {
			t.Fatalf("seed %d: %+v became %+v", seed, b, into)
		}
		for cut := range payload {
			if err := DecodeBatch(payload[:cut], &into); err == nil {
				t.Fatalf("seed %d: cut at %d of %d is accepted", seed, cut, len(payload))
			}
		}
	}
	special := &Batch{Points: []Point{{Fields: []Field{FloatField("a", math.NaN()), FloatField("b", math.Inf(-1))}}}}
	if err := DecodeBatch(AppendBatch(nil, special), &into); err != nil || !math.IsNaN(into.Points[0].Fields[0].Float) || !math.IsInf(into.Points[0].Fields[1].Float, -1) {
		t.Errorf("%+v became %+v, %v", special, into, err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(AppendBatch(nil, randomBatch(rand.New(rand.NewPCG(seed, 3)))))
	}
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, payload []byte) {
		var b, second Batch
		if DecodeBatch(payload, &b) != nil {
			return
		}
		if err := DecodeBatch(AppendBatch(nil, &b), &second); err != nil || second.Reports != b.Reports || len(second.Points) != len(b.Points) {
			t.Fatalf("%x reads as %+v, which comes back as %+v, %v", payload, b, second, err)
		}
	})
}
