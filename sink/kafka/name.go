package kafka

import (
	"bytes"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// NameError is returned when another process holds the name of the collector.
type NameError struct {
	Name    string
	holder  *roster.Member
	Silence time.Duration // of the holder, until the name is taken over
}

func (e *NameError) Error() string {
	holder := "another process"
	if p := e.holder.Process; p != nil {
		holder = fmt.Sprintf("process %d on %q", p.PID, p.Host)
	}
	return fmt.Sprintf("kafka: %s has the name %q since %s, and was heard at %s: nothing is sent, and what is received waits; give this collector another instance, or stop that process: this one takes the name over when that one has ended, or was silent for %v",
		holder, e.Name, utc(e.holder.Start), utc(e.holder.Updated), e.Silence)
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }

// hold is the state of a name as one process sees it. The holder is the process that wrote the last status under the
// name, until it left, ended, or is silent. All members see the log of the roster in one order. Of two processes that
// write under a name, one therefore finds that the last record is not its own. This holds even if one is a copy of the
// other with all its state.
type hold struct {
	held      bool
	ownWords  [][]byte // by this process, the last ones: what is not known to be written may be
	otherWord []byte   // the last word of the other one
	since     time.Time
}

// maxOwn is how many of its own words a process remembers.
const maxOwn = 8

// note remembers a word before it is written.
func (h *hold) note(value []byte) {
	if len(h.ownWords) == maxOwn {
		h.ownWords = append(h.ownWords[:0], h.ownWords[1:]...)
	}
	h.ownWords = append(h.ownWords, bytes.Clone(value))
}

// own reports whether a word is one of this process.
func (h *hold) own(value []byte) bool {
	for _, s := range h.ownWords {
		if bytes.Equal(s, value) {
			return true
		}
	}
	return false
}

// observe evaluates the last word under the name; value is nil if there is none. It returns the other member that
// holds the name, or nil when this process holds it from now on. The time of this machine is now, and that of the
// brokers is kafka. The clocks of both members together differ from that by at most off. Lost reports that this
// process held the name until now.
func (h *hold) observe(key string, value []byte, now, kafka time.Time, silence, off time.Duration) (holder *roster.Member, lost bool) {
	if value == nil || h.own(value) {
		h.held = true
		return nil, false
	}
	lost, h.held = h.held, false
	other, err := roster.ReadMember(key, value)
	if err != nil || other.Left || ended(other.Process) {
		h.held = true
		return nil, lost
	}
	if !bytes.Equal(value, h.otherWord) {
		first := h.otherWord == nil
		h.otherWord, h.since = bytes.Clone(value), now
		if first && !lost { // it may have been silent for long
			h.since = now.Add(-max(0, kafka.Sub(time.Unix(0, other.Updated))-off))
		}
	}
	if now.Sub(h.since) >= silence {
		h.held = true
		return nil, lost
	}
	return other, lost
}
