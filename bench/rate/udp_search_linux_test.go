package rate

import (
	"errors"
	"math"
	"testing"
)

// receiverOf makes trials of a receiver with a capacity and a sender with a limit, both in datagrams a second.
func receiverOf(capacity, sender float64, tries *int) func(float64) (trial, error) {
	return func(rate float64) (trial, error) {
		*tries++
		t := trial{Asked: rate, Sent: min(rate, sender)}
		t.Received = min(t.Sent, capacity)
		t.Lost = uint64(t.Sent - t.Received)
		return t, nil
	}
}

func TestSearch(t *testing.T) {
	tests := []struct {
		name             string
		capacity, sender float64
		want             float64
		limited          bool
	}{
		{"above the start", 543_210, 1e7, 543_210, false},
		{"below the start", 12_345, 1e7, 12_345, false},
		{"at the start", 50_000, 1e7, 50_000, false},
		{"sender's limit", 1e7, 300_000, 300_000, true},
		{"sender's limit between", 350_000, 330_000, 330_000, true},
		{"nothing", 10, 1e7, 0, false},
	}
	for _, tt := range tests {
		tries := 0
		got, err := search(50_000, 0.02, receiverOf(tt.capacity, tt.sender, &tries))
		if err != nil || got.Lost != 0 || got.Sent > tt.want+1 || got.Sent < tt.want*0.96 || got.limited() != tt.limited {
			t.Errorf("%s: search found %+v, %v, want %v (limited: %v)", tt.name, got, err, tt.want, tt.limited)
		}
		if tries > 40 {
			t.Errorf("%s: %d trials", tt.name, tries)
		}
	}
}

// A rate that passed by luck does not pass twice.
func TestSearchConfirms(t *testing.T) {
	seen := map[float64]bool{}
	got, err := search(1000, 0.02, func(rate float64) (trial, error) {
		r := trial{Asked: rate, Sent: rate}
		if rate > 1e6 || rate > 800_000 && seen[math.Round(rate)] {
			r.Lost = 1
		}
		seen[math.Round(rate)] = true
		return r, nil
	})
	// Each lower rate above 800 000 is tried once on the way down and passes: what counts is that the first did not.
	if err != nil || got.Lost > 0 || got.Sent > 990_000 {
		t.Errorf("search found %+v, %v, want less than what passed only once", got, err)
	}
}

func TestSearchError(t *testing.T) {
	want := errors.New("no")
	for fail := range 12 {
		n := 0
		inner := receiverOf(300_000, 1e7, new(int))
		_, err := search(50_000, 0.1, func(rate float64) (trial, error) {
			if n++; n > fail {
				return trial{}, want
			}
			return inner(rate)
		})
		if fail < 8 && !errors.Is(err, want) {
			t.Errorf("trial %d failed, search gave %v", fail+1, err)
		}
	}
}

// The sender is called limited only after it failed several times, and a loss is believed at once.
func TestRetrying(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sent  []float64
		lost  uint64
		tries int
		want  float64
	}{
		{"at once", []float64{1000}, 0, 1, 1000},
		{"second try", []float64{500, 990}, 0, 2, 990},
		{"never", []float64{500, 700, 600}, 0, 3, 700},
		{"lost", []float64{500}, 3, 1, 500},
	} {
		n := 0
		got, err := retrying(func(rate float64) (trial, error) {
			n++
			return trial{Asked: rate, Sent: tt.sent[n-1], Lost: tt.lost}, nil
		})(1000)
		if err != nil || n != tt.tries || got.Sent != tt.want {
			t.Errorf("%s: %+v after %d tries, want %v after %d", tt.name, got, n, tt.want, tt.tries)
		}
	}
}
