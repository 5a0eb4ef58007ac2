package ingest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// script is a LogReader with the steps of a test: a list of messages, an error, or a wait.
type script struct {
	steps  []any // []int64, error
	offset int64
	high   int64
}

func (s *script) Next(ctx context.Context) ([]Message, error) {
	if len(s.steps) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	switch x := step.(type) {
	case error:
		return nil, x
	case []int64:
		var list []Message
		for _, o := range x {
			list = append(list, Message{Offset: o})
			s.offset = o + 1
		}
		return list, nil
	}
	panic("an unknown step")
}
func (s *script) Offset() int64 { return s.offset }
func (s *script) Limit(int)     {}
func (s *script) High() int64   { return s.high }

func TestReadTo(t *testing.T) {
	away := errors.New("the brokers are away")
	for _, tt := range []struct {
		name   string
		steps  []any
		high   int64
		to     int64
		want   []int64
		fails  int
		waited time.Duration
	}{
		{name: "nothing to read"},
		{name: "to the offset", steps: []any{[]int64{0, 1}, []int64{2}}, high: 9, to: 3, want: []int64{0, 1, 2}},
		{name: "an answer beyond it", steps: []any{[]int64{0, 1, 2, 3}}, high: 9, to: 2, want: []int64{0, 1, 2, 3}},
		{name: "the last were compacted away", steps: []any{[]int64{0, 2}, []int64{}}, high: 3, to: 5, want: []int64{0, 2}},
		{name: "nothing has come yet", steps: []any{[]int64{}, []int64{0}}, high: 1, to: 1, want: []int64{0}},
		{name: "no answer yet", steps: []any{[]int64{}, []int64{0}}, high: -1, to: 1, want: []int64{0}},
		{name: "errors", steps: []any{away, away, []int64{0}, away, []int64{1}}, high: 2, to: 2, want: []int64{0, 1}, fails: 3, waited: 200 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []int64
			fails, began := 0, time.Now()
			err := ReadTo(t.Context(), &script{steps: tt.steps, high: tt.high}, tt.to, func(err error) {
				if fails++; err != away {
					t.Errorf("%s: %v", tt.name, err)
				}
			}, func(m *Message) { got = append(got, m.Offset) })
			if err != nil || !slices.Equal(got, tt.want) || fails != tt.fails || time.Since(began) != tt.waited {
				t.Errorf("%s: %v, %v, %d errors in %v; want %v, %d in %v", tt.name, got, err, fails, time.Since(began), tt.want, tt.fails, tt.waited)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for _, steps := range [][]any{nil, {away, away, away, away, away, away, away, away, away, away}} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			began := time.Now()
			err := ReadTo(ctx, &script{steps: steps}, 1, func(error) {}, func(*Message) {})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
				t.Errorf("after the end: %v in %v", err, time.Since(began))
			}
			cancel()
		}
	})
}
