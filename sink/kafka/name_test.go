package kafka

import (
	"os"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// word is the status that a process writes under a name.
func word(pid int, updated time.Time, left bool) []byte {
	m := roster.Member{
		Role: roster.Collector, Name: "east", Boot: uint64(pid), Start: updated.UnixNano(), Updated: updated.UnixNano(), Left: left,
		Process: &roster.Process{PID: pid, Host: "h"},
	}
	return m.Append(nil)
}

// A name belongs to the writer of the last record under it, as long as it is not silent.
func TestHold(t *testing.T) {
	const key, silence, off = "collector/east", 4 * time.Second, 3 * time.Second
	now := time.Unix(1_700_000_000, 0)
	holds := func(h *hold, value []byte, at time.Time) (holder, lost bool) {
		t.Helper()
		m, lost := h.observe(key, value, at, at, silence, off)
		if (m == nil) != h.held {
			t.Errorf("another one has the name: %t, and this one: %t", m != nil, h.held)
		}
		return m != nil, lost
	}
	t.Run("nobody", func(t *testing.T) {
		for name, value := range map[string][]byte{
			"no word": nil, "left": word(1, now, true), "nonsense": []byte("{"), "silent": word(1, now.Add(-silence-off), false),
		} {
			if other, lost := holds(&hold{}, value, now); other || lost {
				t.Errorf("%s: another one has it: %t; this one had it: %t", name, other, lost)
			}
		}
	})
	t.Run("second", func(t *testing.T) {
		var h hold
		for i := range 10 { // as long as the first one speaks
			at := now.Add(time.Duration(i) * time.Second)
			if other, _ := holds(&h, word(1, at, false), at); !other {
				t.Fatal("two have the name")
			}
		}
		last := word(1, now.Add(9*time.Second), false)
		if other, _ := holds(&h, last, now.Add(9*time.Second+silence-1)); !other {
			t.Error("it takes the name before the other one is silent")
		}
		if other, _ := holds(&h, last, now.Add(9*time.Second+silence)); other {
			t.Error("it does not take the name of one that is silent")
		}
	})
	t.Run("snapshot", func(t *testing.T) {
		// Both know the same, and one of them is set back.
		var first hold
		words := [][]byte{word(1, now, false), word(1, now.Add(1), false), word(1, now.Add(2), false)}
		first.note(words[0])
		holds(&first, words[0], now)
		second := hold{held: true, ownWords: append([][]byte{}, first.ownWords...)}
		first.note(words[1])
		first.note(words[2])
		if other, lost := holds(&second, words[2], now); !other || !lost {
			t.Errorf("the copy goes on: another one has the name: %t, the copy had it: %t", other, lost)
		}
		if other, _ := holds(&first, words[2], now); other {
			t.Error("the first one lost its name to its copy")
		}
	})
	t.Run("ended", func(t *testing.T) {
		self := ThisProcess()
		gone := *self
		for gone.PID = 1 << 21; gone.PID > 0; gone.PID-- { // a number that no process has
			if self.Space == "" || ended(&gone) {
				break
			}
		}
		if self.Space == "" {
			t.Skip("here it is not known which processes there are")
		}
		if ended(self) || ended(nil) || self.PID != os.Getpid() {
			t.Errorf("%+v has ended", self)
		}
		m := roster.Member{Role: roster.Collector, Name: "east", Updated: now.UnixNano(), Process: &gone}
		if other, _ := holds(&hold{}, m.Append(nil), now); other {
			t.Error("a process that was killed on this machine keeps its name")
		}
		gone.Space = "another machine"
		if other, _ := holds(&hold{}, m.Append(nil), now); !other {
			t.Error("of a process on another machine it is known that it has ended")
		}
	})
}
