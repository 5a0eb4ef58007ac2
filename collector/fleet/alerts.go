package fleet

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// The owner of a fleet makes the alerts of all its collectors, so that one cause is one alert. Open alerts are in the
// owner's checkpoint. An owner that goes on from it sends later alerts again: an alert comes at least once.
//
// A receiver that is away must not keep a window from being stored. Its alerts therefore wait in a queue of their own,
// and in a spool on the disk of the consumer that made them. Checkpoints do not wait for them.

// openStores puts queues before the stores of series and before the receivers of alerts. An error closes all of them.
func (c *Consumer) openStores() (err error) {
	var series, receivers []stores.Store
	for _, s := range c.opt.Stores {
		if s.Alerts {
			receivers = append(receivers, s)
			c.ledger.Aside(s.Name)
			continue
		}
		if s.Spool != nil {
			c.log.Info("a consumer keeps no spool: Kafka has everything until the store does", "sink", s.Name)
			s.Spool = nil
		}
		series = append(series, s)
	}
	opt := stores.SetOptions{Full: sink.Block, Ledger: c.ledger, Write: c.writeSeconds, Log: c.log}
	if c.series, err = stores.NewSet(series, opt); err != nil {
		return err
	}
	opt.Full = sink.Drop
	c.receivers, err = stores.NewSet(receivers, opt)
	if err == nil && len(receivers) > 0 {
		c.alerting, err = stores.NewAlerting(c.opt.Alerts, c.opt.Params.Name, c.log)
	}
	if err != nil {
		c.series.Discard()
		c.receivers.Discard()
		return err
	}
	if c.rules = c.alerting.Rules(); c.rules == nil {
		c.rules = stores.OpenRules(c.opt.Alerts.File, c.log)
	}
	return nil
}

// receiverProblems returns a sentence for each receiver that does not get its alerts.
func (c *Consumer) receiverProblems() (problems []string) {
	for _, r := range c.receivers.All() {
		if st := r.Stats(); st.Failing && (st.Config || st.Spool == nil) {
			problems = append(problems, fmt.Sprintf("%s does not send to %s: %s", r.Name(), r.Target, st.LastError))
		}
	}
	return problems
}

// alert hands what follows from a window to the receivers.
func (c *Consumer) alert(ctx context.Context, label int64, found []inference.Finding) {
	if c.alerting != nil {
		c.receivers.Alert(ctx, c.alerting.Step(label, found, c.names()))
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

// alertsGoOn restores the alerts from a checkpoint; state is nil if it has none. With same, the detectors' state is of
// the same checkpoint. Otherwise open findings go to the alerts with the next window, because detectors that go on
// publish changes only.
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
			t.w.noteError(fmt.Errorf("alerts begin anew: %w", err))
		} else {
			a.Restarted()
		}
	}
	t.unalerted = t.detector.Open()
}
