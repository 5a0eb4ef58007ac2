package agent

import (
	"context"
	"log/slog"

	"github.com/hopscope/hopscope/p4/probe"
)

// files is where a plan is from that no controller sent.
const files = "files"

// AdoptFiles has the agent adopt a plan from files.
func (a *Agent) AdoptFiles(cfg *Config, plan *probe.Plan, log *slog.Logger) error {
	if _, err := a.Adopt(plan, files); err != nil {
		return err
	}
	if warning := cfg.notNamed(plan); warning != "" {
		log.Warn("plan", "problem", warning)
	}
	return nil
}

// RereadFiles reads the files of the plan, and that of keys, again at every hangup, until ctx ends.
func (a *Agent) RereadFiles(ctx context.Context, hangup <-chan struct{}, cfg *Config, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		a.rereadKeys(log)
		if !cfg.Files.Named() {
			log.Warn("nothing to read again: the plan is not from files")
			continue
		}
		if plan, err := cfg.Files.Read(nextEpoch(a.Status().Epoch)); err != nil {
			a.refuse(0, files, err)
		} else {
			_ = a.AdoptFiles(cfg, plan, log) // a refusal is logged, and part of the status
		}
	}
}

// rereadKeys takes over the keys of the file. Where that cannot be read, those before stay in use.
func (a *Agent) rereadKeys(log *slog.Logger) {
	if a.cfg.DigestKeys == "" {
		return
	}
	k, err := probe.ReadKeys(a.cfg.DigestKeys)
	if err != nil {
		log.Error("the keys of digests are refused; those before stay in use", "error", err.Error())
		return
	}
	a.keys.Store(k)
	log.Info("keys of digests in use", "sends_with", k.Sender(), "keys", k.Len())
}
