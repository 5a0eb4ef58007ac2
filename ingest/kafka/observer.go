package kafka

import (
	"context"
	"fmt"
)

// Leader is the member that came to be in charge last, by the log. A killed one stays there until another one has
// taken over.
type Leader struct {
	Name  string // for display; what its record says, of any length
	Term  uint64 // 0 if no member was in charge yet
	Epoch uint32 // the highest that was ever written
}

// Observer reads which member is in charge, and takes no part in the election. Its methods may be called from anywhere.
type Observer struct {
	cfg  *LeadConfig
	turn chan struct{} // one reads at a time
	next int64         // offset up to which the log was read
	log  history
}

// NewObserver observes the log of members. It needs no group.
func NewObserver(cfg LeadConfig) *Observer {
	o := &Observer{cfg: cfg.complete(), turn: make(chan struct{}, 1)}
	o.turn <- struct{}{}
	return o
}

// Leader reads the records of the log since the last call. It waits for as long as the settings say, and not longer
// than ctx.
func (o *Observer) Leader(ctx context.Context) (Leader, error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	select {
	case <-o.turn:
		defer func() { o.turn <- struct{}{} }()
	case <-ctx.Done():
		return Leader{}, fmt.Errorf("read the plans: %w", ctx.Err())
	}
	first, next, err := o.cfg.Log.Bounds(ctx, o.cfg.Topic, 0)
	if err != nil {
		return Leader{}, err
	}
	if next < o.next { // it is another topic of the same name
		o.next, o.log = 0, history{}
	}
	if o.next, err = o.cfg.read(ctx, max(first, o.next), next, &o.log); err != nil {
		return Leader{}, err
	}
	if o.log.last == nil {
		return Leader{Epoch: o.log.epoch}, nil
	}
	return Leader{o.log.last.From, o.log.last.Term, o.log.epoch}, nil
}
