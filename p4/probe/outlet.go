package probe

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"
)

// Outlet is the state of one collector: whether reports can be sent to it.
type Outlet struct {
	Collector string                 // its address
	failed    time.Time              // latest failure
	problem   atomic.Pointer[string] // why reports cannot be sent at present; nil while they can
}

// quiet is the time without a failure after which a collector takes reports again. Where nothing listens, the kernel
// reports every second datagram as refused.
const quiet = 10 * time.Second

// Sent records the result of sending one datagram, and logs the first failure and the end of failures.
func (r *Outlet) Sent(err error, now time.Time, log *slog.Logger) {
	was := r.problem.Load()
	switch {
	case err != nil:
		r.failed = now
		why := err.Error()
		if errors.Is(err, syscall.ECONNREFUSED) {
			why = "nothing listens there; check collectors here and ports of the collector, which by default are on loopback"
		}
		text := fmt.Sprintf("reports to collector %s fail: %s", r.Collector, why)
		r.problem.Store(&text)
		if was == nil {
			log.Warn("reports cannot be sent", "collector", r.Collector, "error", why)
		}
	case was != nil && now.Sub(r.failed) > quiet:
		r.problem.Store(nil)
		log.Info("reports are sent again", "collector", r.Collector)
	}
}

// Problem is why reports cannot be sent at present, in a sentence, or "". It may be called at any time.
func (r *Outlet) Problem() string {
	if why := r.problem.Load(); why != nil {
		return *why
	}
	return ""
}
