package collector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// rival is another run that writes to a store under the name of this instance, so that points of the two take each
// other's place.
type rival struct {
	store string
	last  time.Time // of its windows
}

// watchInstance asks the stores that can tell, every ten windows, who else writes under this name, until ctx ends. It is
// best effort: a store that does not answer or does not allow to ask stops nothing.
func (c *Collector) watchInstance(ctx context.Context) {
	var stores []*Store
	for i := range c.opt.Stores {
		if _, ok := c.opt.Stores[i].Writer.(sink.Witness); ok {
			stores = append(stores, &c.opt.Stores[i])
		}
	}
	if len(stores) == 0 {
		return
	}
	every := max(10*c.cfg.Window, time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := map[string]bool{} // stores that do not allow to ask
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := c.read()
		// A run before this one may have written windows until this one began, and by a clock that differs a little. When
		// this one began counts by the clock as it is set now.
		began := now.wall - (now.mono - c.began) + 2*int64(c.cfg.Window)
		since := time.Unix(0, max(began, now.wall-3*int64(every)))
		found, asked := map[string]rival{}, false
		for _, s := range stores {
			if told[s.Name] {
				continue
			}
			runs, err := s.Writer.(sink.Witness).Runs(ctx, c.instance, since)
			if ctx.Err() != nil {
				return
			}
			if sink.Permanent(err) {
				told[s.Name] = true
				c.log.Info("cannot check whether another collector writes under this instance's name", "sink", s.Name, "instance", c.instance, "error", err.Error())
			}
			if err != nil {
				continue
			}
			asked = true
			for boot, last := range runs {
				if boot != c.boot {
					found[boot] = rival{s.Name, last}
				}
			}
		}
		if asked {
			c.tellRivals(found)
		}
	}
}

// tellRivals tells of rivals when they are first seen, and when the last of them is gone.
func (c *Collector) tellRivals(found map[string]rival) {
	c.stateMu.Lock()
	before := c.rivals
	c.rivals = found
	c.stateMu.Unlock()
	for boot, r := range found {
		if _, known := before[boot]; !known {
			c.log.Error("another run writes under this instance's name, so points take each other's place: give each collector its own instance in the settings",
				"instance", c.instance, "sink", r.store, "run", boot, "window", r.last.UTC().Format(time.RFC3339))
		}
	}
	if len(before) > 0 && len(found) == 0 {
		c.log.Info("no other run writes under this instance's name any more", "instance", c.instance)
	}
}

// rivalProblems says what is wrong with the name of an instance.
func rivalProblems(instance string, rivals map[string]rival) (out []string) {
	for _, boot := range slices.Sorted(maps.Keys(rivals)) {
		r := rivals[boot]
		out = append(out, fmt.Sprintf("instance: run %s writes to %s under the name %s too, last at %s; points take each other's place. Give each collector its own instance in the settings",
			boot, r.store, instance, r.last.UTC().Format(time.RFC3339)))
	}
	return out
}
