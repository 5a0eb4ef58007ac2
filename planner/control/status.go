package control

import (
	"fmt"
	"slices"
)

// Phase returns the present phase of the controller.
func (c *Controller) Phase() Phase {
	switch {
	case c.deposedBy != "":
		return Deposed
	case len(c.net.Probes) == 0:
		return NoNetwork
	case c.target == nil:
		return Starting
	case c.settled:
		return Steady
	}
	for k := range c.devices {
		if d := &c.devices[k]; d.Kind == Agent && d.live() && d.inForce != c.target.Epoch {
			if c.made() {
				return Moving
			}
			return Making
		}
	}
	return Breaking
}

// Target is the plan that devices are to have, or nil.
func (c *Controller) Target() *Plan { return c.target }

// InForce is the last plan that every device that was up had, or nil.
func (c *Controller) InForce() *Plan { return c.inForce }

// Refuses reports whether a switch that is up refuses something, and is not known to hold all entries of a list.
func (c *Controller) Refuses(sw string, list []Entry) bool {
	d := c.find(Device{Switch, sw})
	return d != nil && d.up && d.failed != "" && slices.ContainsFunc(list, func(e Entry) bool {
		i, ok := slices.BinarySearchFunc(d.have, e, Entry.compare)
		return !ok || d.have[i].Value != e.Value
	})
}

// Status is a picture of the controller.
func (c *Controller) Status() Status {
	s := Status{
		Phase: c.Phase(), Paused: c.paused, DryRun: c.dry, Pending: c.pending, Would: c.would, Network: c.net.Name,
		Suspects: c.suspects, Counts: c.counts,
	}
	switch {
	case c.deposedBy != "":
		s.Why = c.deposedBy
	case c.refusal.why != "" && c.counts.Cycles < c.refusal.until:
		s.Why = "the last plan was refused: " + c.refusal.why
	}
	if c.target != nil {
		s.Epoch, s.Stats = c.target.Epoch, c.target.Stats
		if c.latest.plan == c.target {
			s.Stats = c.latest.stats
		}
		_, s.Behind = c.stage()
	}
	if c.inForce != nil {
		s.InForce = c.inForce.Epoch
	}
	for k := range c.devices {
		if d := &c.devices[k]; d.Kind == Agent && !d.leaving {
			if s.Agents++; c.inForce != nil && d.known && !d.foreign && d.inForce == c.inForce.Epoch {
				s.Have++
			}
		}
	}
	if c.before != nil {
		s.Before = c.before.Epoch
	}
	s.Devices = make([]DeviceStatus, len(c.devices))
	for k := range c.devices {
		s.Devices[k] = c.deviceStatus(&c.devices[k])
	}
	return s
}

func (c *Controller) deviceStatus(d *device) DeviceStatus {
	s := DeviceStatus{Device: d.Device, Epoch: d.inForce, Entries: len(d.have), Waits: d.waits.String(), Why: d.failed, Awaits: c.cfg.Approve && d.awaits() && !d.approved}
	behind := d.Kind == Switch && !d.clean || d.Kind == Agent && c.target != nil && d.inForce != c.target.Epoch
	switch {
	case !d.up && d.program != "":
		s.State, s.Why = "down", d.program
		switch {
		case d.loads >= mostLoads && d.waits == nothing:
			s.State, s.Why = "failed", fmt.Sprintf("out of service: its program was loaded %d times: %s; \"resume\" tries again", d.loads, d.program)
		case !d.mayLoad:
			s.Why += "; the settings do not allow to load it"
		case c.dry || c.paused:
			s.Why += "; it is not loaded in a dry run or a pause"
		case c.cfg.Approve && !d.approved:
			s.Why += "; loading it waits for approval"
		}
	case !d.up:
		s.State = "down"
	case d.silent:
		s.State = "silent"
		s.Why = fmt.Sprintf("did not answer %d times in a row", d.attempts)
	case d.failed != "":
		s.State = "failed"
	case !d.known:
		s.State, s.Why = "unknown", "what it holds is not read yet"
		if d.attempts > 0 {
			s.Why = fmt.Sprintf("it is asked again: did not answer %d times in a row", d.attempts)
		}
	case behind:
		s.State = "behind"
	default:
		s.State = "ready"
	}
	return s
}
