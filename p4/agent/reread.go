package agent

import (
	"context"
	"log/slog"
)

// AdoptFiles has the agent adopt a plan from files.
func (a *Agent) AdoptFiles(cfg *Config, plan *Plan, log *slog.Logger) error {
	if _, err := a.Adopt(plan, "files"); err != nil {
		return err
	}
	if warning := cfg.NotNamed(plan); warning != "" {
		log.Warn("plan", "problem", warning)
	}
	return nil
}

// RereadFiles reads the files of the plan again at every hangup, until ctx ends.
func (a *Agent) RereadFiles(ctx context.Context, hangup <-chan struct{}, cfg *Config, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		if !cfg.Files.Used() {
			log.Warn("nothing to read again: the plan is not from files")
			continue
		}
		if plan, err := cfg.Files.Read(nextEpoch(a.Status().Epoch)); err != nil {
			a.Refuse(0, "files", err)
		} else {
			_ = a.AdoptFiles(cfg, plan, log) // a refusal is logged, and part of the status
		}
	}
}
