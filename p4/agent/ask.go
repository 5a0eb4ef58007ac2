package agent

import "github.com/hopscope/hopscope/p4/probe"

// Rounds returns counts that include everything received before the call. It waits, as long as done is open, until the
// receiving loop has read what is pending. The result ok is false if that did not happen. Run must be under way.
func (a *Agent) Rounds(done <-chan struct{}) (r probe.Rounds, ok bool) {
	ask := make(chan receivedRounds, 1)
	select {
	case a.asked <- ask:
	case <-done:
		return r, false
	}
	select {
	case c := <-ask:
		r.Received, r.Spoiled, r.Unfollowed = c.received, c.spoiled, c.unfollowed
	case <-done:
		return r, false
	}
	r.Address = a.ends.From
	if w := a.work.Load(); w != nil {
		r.Epoch, r.Sent = w.Plan.Epoch, w.SentRounds()
	}
	return r, true
}

// receivedRounds is the report of the loop that receives.
type receivedRounds struct {
	received            []probe.ReceivedRounds
	spoiled, unfollowed uint64
}

// answerRounds answers requests for rounds. Nothing that came before is unread then.
func (r *receiver) answerRounds() {
	select {
	case ask := <-r.agent.asked:
		c := &r.agent.count
		x := receivedRounds{received: r.track.Received(), spoiled: c.kernelDropped.Load() + c.stray.Load()}
		if r.track.Plan == nil { // probes of a plan have room
			x.unfollowed = c.unfollowed.Load()
		}
		for _, why := range [...]probe.Reason{probe.Unfinished, probe.BadINT, probe.BadPayload} { // foreign frames are no probes
			x.spoiled += c.malformed[why].Load()
		}
		ask <- x
	default:
	}
}
