package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/notify"
)

// ErrNoReceiver is that of [SendTest] where no receiver of alerts is switched on.
var ErrNoReceiver = errors.New("no receiver of alerts is enabled")

// testPatience bounds the answer of a receiver to a test alert.
const testPatience = 30 * time.Second

// SendTest sends a test alert to all receivers that are switched on, and writes the answer of each. None is [ErrNoReceiver].
func SendTest(ctx context.Context, w io.Writer, cfg any, instance string, now time.Time) error {
	receivers, failed := OpenReceivers(cfg)
	if len(receivers)+len(failed) == 0 {
		return ErrNoReceiver
	}
	alert := notify.Alert{Status: notify.Test, Instance: instance, Key: "test", Severity: inference.Info.String(), Start: now, Updated: now, Time: now,
		Text: "a test of alerts by hopscope findings test; nothing is wrong"}
	for _, r := range receivers {
		patience, cancel := context.WithTimeout(ctx, testPatience)
		err := r.Writer.Write(patience, notify.Batch([]notify.Alert{alert}))
		cancel()
		if err = errors.Join(err, r.Writer.Close()); err != nil {
			failed[r.Name] = err
			continue
		}
		fmt.Fprintf(w, "%s: %s took the alert\n", r.Name, names.Printable(r.Target))
	}
	lines := make([]string, 0, len(failed))
	for name, err := range failed {
		lines = append(lines, name+": "+err.Error())
	}
	slices.Sort(lines)
	for _, n := range lines {
		fmt.Fprintln(w, names.Printable(n))
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d receivers did not take the alert", len(failed), len(failed)+len(receivers)-countFailed(receivers, failed))
	}
	return nil
}

// countFailed counts the receivers that are in failed, too.
func countFailed(receivers []Store, failed map[string]error) (n int) {
	for _, r := range receivers {
		if failed[r.Name] != nil {
			n++
		}
	}
	return n
}
