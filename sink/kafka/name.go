package kafka

import (
	"bytes"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// NameError says that another process has the name of the collector.
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

// hold is the holder of a name: the process that wrote the last status under it, until it has left, has ended, or is silent. The log
// of the roster has one order for all, so that of two processes which write under a name one finds that the last record is not its
// own. That is so also for two of which one is a copy of the other, with all that it knew.
type hold struct {
	held      bool
	ownWords  [][]byte // by this process, the last ones: what is not known to be written may be
	otherWord []byte   // the last word of the other one
	since     time.Time
}

// maxOwn is how many words of its own a process knows.
const maxOwn = 8

// note notes a word before it is written.
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

// observe looks at the last word under the name, nil if there is none, and gives another member that has it, or nil when this process has
// it from now on. Now is the time of this machine and kafka that of the brokers; the clocks of both members are off that by no more than
// off together. Lost says that this process had it until now.
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
