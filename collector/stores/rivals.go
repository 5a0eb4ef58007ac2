package stores

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// Rivals are other runs that write to a store under the name of this instance. Points of the two replace each other. They do
// not make a collector unready: its reports are received and stored, and without both collectors those of each would be lost.
type Rivals struct {
	instance, boot string
	length         time.Duration // of a window
	log            *slog.Logger
	witnesses      []*Queue

	mu    sync.Mutex
	found map[string]rival // by their run
}

type rival struct {
	store string
	last  time.Time // of its windows
}

// Rivals makes the watch over the name of an instance, for the run boot, with windows of a length.
func (s *Set) Rivals(instance, boot string, length time.Duration) *Rivals {
	r := &Rivals{instance: instance, boot: boot, length: length, log: s.log}
	for _, q := range s.queues {
		if _, ok := q.Writer.(sink.Witness); ok {
			r.witnesses = append(r.witnesses, q)
		}
	}
	return r
}

// Watch asks the stores that have the answer, every ten windows, which runs write under this name, until ctx ends. It is best effort:
// a store that does not answer or does not allow to ask stops nothing. Look returns the time, and when this run began by the clock as
// it is set now.
func (r *Rivals) Watch(ctx context.Context, look func() (now, began int64)) {
	if len(r.witnesses) == 0 {
		return
	}
	every := max(10*r.length, time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	barred := map[string]bool{} // stores that do not allow to ask
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// A run before this one may have written windows until this one began, and by a clock that differs a little.
		now, began := look()
		since := time.Unix(0, max(began+2*int64(r.length), now-3*int64(every)))
		found, asked := map[string]rival{}, false
		for _, q := range r.witnesses {
			name := q.Name()
			if barred[name] {
				continue
			}
			runs, err := q.Writer.(sink.Witness).Runs(ctx, r.instance, since)
			if ctx.Err() != nil {
				return
			}
			if sink.Permanent(err) {
				barred[name] = true
				r.log.Info("cannot check whether another collector writes under this instance's name", "sink", name, "instance", r.instance, "error", err.Error())
			}
			if err != nil {
				continue
			}
			asked = true
			for boot, last := range runs {
				if boot != r.boot {
					found[boot] = rival{name, last}
				}
			}
		}
		if asked {
			r.set(found)
		}
	}
}

// set notes the rivals, and logs those that are new, and when the last of them is gone.
func (r *Rivals) set(found map[string]rival) {
	r.mu.Lock()
	before := r.found
	r.found = found
	r.mu.Unlock()
	for boot, x := range found {
		if _, known := before[boot]; !known {
			r.log.Error("another run writes under this instance's name, so points take each other's place: give each collector its own instance in the settings",
				"instance", r.instance, "sink", x.store, "run", boot, "window", x.last.UTC().Format(time.RFC3339))
		}
	}
	if len(before) > 0 && len(found) == 0 {
		r.log.Info("no other run writes under this instance's name any more", "instance", r.instance)
	}
}

// Problems returns a sentence for each rival about the name of the instance.
func (r *Rivals) Problems() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, boot := range slices.Sorted(maps.Keys(r.found)) {
		x := r.found[boot]
		out = append(out, fmt.Sprintf("instance: run %s writes to %s under the name %s too, last at %s; points take each other's place. Give each collector its own instance in the settings",
			boot, x.store, r.instance, x.last.UTC().Format(time.RFC3339)))
	}
	return out
}
