package collector

import (
	"github.com/hopscope/hopscope/sink"
)

// Policy holds the differences between a live collector and a replay.
type Policy struct {
	// Block makes sources wait for a full queue. Otherwise what finds no room is dropped and counted, except what comes
	// from a source that can wait, see [ingest.Waiter].
	Block bool
	// CaptureTime ends windows by the time stamps of frames. Otherwise they end by the clock.
	CaptureTime bool
}

// Live is the policy of a collector whose sources cannot be slowed down.
var Live = Policy{}

// Replay is the policy for a capture. It is read as fast as possible, nothing is dropped, and its windows are those of
// the time of the capture.
var Replay = Policy{Block: true, CaptureTime: true}

// full is the answer of queues behind the windows to a batch that finds no room.
func (p Policy) full() sink.Policy {
	if p.Block {
		return sink.Block
	}
	return sink.Drop
}
