package agent

import (
	"fmt"
	"time"
)

// calm is how long a port takes every probe before it counts as one that takes them again.
const calm = 3 * time.Second

// port follows whether the agent's own port takes the due probes. A probe that it does not take never was in the
// network.
type port struct {
	sent, failed uint64        // by the last turn
	last         time.Duration // of the last turn in which it did not take one
	since        uint64        // sent by then
	down         bool          // so was the line at the last turn
}

// turn checks the probes that were sent since the last one, at a time since the start of the agent. It logs once when
// the port begins to refuse probes and once when that is over.
func (p *port) turn(a *Agent, now time.Duration) {
	sent, failed := a.count.sent.Load(), a.count.sendErrors.Load()
	more, tried := failed-p.failed, failed-p.failed+sent-p.sent
	p.sent, p.failed = sent, failed
	was := a.refuses.Load()
	why := a.unsent.Load()
	wasDown, down := p.down, a.down.Load()
	p.down = down
	switch {
	case wasDown || down: // which explains it
	case more > 0 && why != nil: // the reason is stored before the count
		p.last, p.since = now, sent
		text := fmt.Sprintf("interface %s does not take all probes: %d of the last %d, %v%s", a.cfg.Interface, more, tried, *why, advice(*why))
		a.refuses.Store(&text)
		if was == nil {
			a.log.Error("probes are not sent, which is no loss of the network", "interface", a.cfg.Interface, "probes", more, "of", tried, "error", (*why).Error()+advice(*why))
		}
	case was != nil && now-p.last >= calm && sent > p.since:
		a.refuses.Store(nil)
		a.log.Info("all probes are sent again", "interface", a.cfg.Interface)
	}
}
