package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/refused"
	"github.com/hopscope/hopscope/sink/spool"
)

// The owner of a fleet makes the alerts of all its collectors, so that one cause is one alert. What is open is in the owner's
// checkpoint. Whoever goes on from that tells again what was told since: an alert comes once at least.
//
// A receiver that is away keeps no window from being stored. So its alerts wait behind a queue of their own, and in a spool
// on the disk of the consumer that made them; checkpoints do not wait for them.

// receiver gets alerts.
type receiver struct {
	collector.Store
	queue *sink.Queue
}

// openReceivers takes the receivers of alerts out of the stores.
func (c *Consumer) openReceivers() error {
	series := []collector.Store(nil)
	var err error
	for i := range c.opt.Stores {
		s := c.opt.Stores[i]
		if !s.Alerts {
			series = append(series, s)
			continue
		}
		if err == nil {
			err = c.openReceiver(s)
		} else {
			_ = s.Writer.Close() // nothing was written
		}
	}
	if err == nil && len(c.receivers) > 0 {
		c.alerting, err = collector.NewAlerting(c.opt.Alerts, c.opt.Params.Name, c.log)
	}
	c.opt.Stores = series
	if err == nil {
		return nil
	}
	for _, s := range series {
		err = errors.Join(err, s.Writer.Close())
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	c.closeReceivers(ended)
	return err
}

func (c *Consumer) openReceiver(s collector.Store) error {
	c.ledger.Aside(s.Name)
	opt := sink.QueueOptions{Policy: sink.Drop, Account: c.ledger.Account(s.Name), Target: s.Target,
		Observe: c.writeSeconds.Observer(s.Name)}
	if s.Spool != nil {
		sp, err := spool.Open(*s.Spool)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.Name, err), s.Writer.Close())
		}
		opt.Spool, opt.Refused = sp, refused.Open(s.RefusedDir(), s.RefusedBytes)
	}
	c.receivers = append(c.receivers, &receiver{s, sink.NewQueue(s.Writer, s.Queue, opt)})
	return nil
}

func (c *Consumer) closeReceivers(ctx context.Context) {
	for _, r := range c.receivers {
		if err := r.queue.Close(ctx); err != nil {
			c.log.Warn("a receiver of alerts did not take everything before the end", "sink", r.Name, "error", err.Error())
		}
	}
}

// receiverProblems says which receivers do not get their alerts.
func (c *Consumer) receiverProblems() (problems []string) {
	for _, r := range c.receivers {
		if st := r.queue.Stats(); st.Failing && (st.Config || st.Spool == nil) {
			problems = append(problems, fmt.Sprintf("%s does not send to %s: %s", r.Name, r.Target, st.LastError))
		}
	}
	return problems
}

// alert hands what follows from a window to the receivers.
func (c *Consumer) alert(ctx context.Context, label int64, found []inference.Finding) {
	if c.alerting == nil {
		return
	}
	alerts := c.alerting.Step(label, found, c.names())
	for _, r := range c.receivers {
		b := collector.BatchFor(alerts, r.queue.Stats().Failing)
		if len(b.Points) == 0 {
			continue
		}
		if err := r.queue.Put(ctx, b); err != nil {
			c.log.Error("alerts not taken", "sink", r.Name, "error", err.Error())
		}
	}
}

// withAlerts marks, in the first byte of the part of the detectors, that the state of alerts is behind theirs:
//
//	version of the detectors | withAlerts <1b>  length of their state <uvarint>  their state  state of alerts
//
// A fleet without receivers has no such part. A program from before there were alerts finds a state of detectors of another
// version, begins these anew, and goes on with everything else.
const withAlerts = 0x80

func appendDetectors(detectors, alerts []byte) []byte {
	b := append([]byte{}, detectors[0]|withAlerts)
	b = binary.AppendUvarint(b, uint64(len(detectors)))
	return append(append(b, detectors...), alerts...)
}

// readDetectors takes both apart; alerts are nil where there are none.
func readDetectors(b []byte) (detectors, alerts []byte, err error) {
	if len(b) == 0 || b[0]&withAlerts == 0 {
		return b, nil, nil
	}
	n, used := binary.Uvarint(b[1:])
	if used <= 0 || n > uint64(len(b)-1-used) {
		return nil, nil, errCheckpoint
	}
	b = b[1+used:]
	return b[:n], b[n:], nil
}

// alertsGoOn lets the alerts go on from a checkpoint; state is nil where that has none. Detectors that do not begin anew tell
// only what is new, so what is open already is told to the alerts with the next window.
func (t *ownerTask) alertsGoOn(state []byte, same bool) {
	a := t.w.c.alerting
	if a == nil {
		return
	}
	if state != nil {
		err := a.ReadState(slices.Clone(state))
		if err == nil && same {
			return
		}
		if err != nil {
			t.w.tell(fmt.Errorf("alerts begin anew: %w", err))
		} else {
			a.Restarted()
		}
	}
	t.again = t.detector.Open()
}
