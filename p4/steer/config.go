package steer

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ListenConfig holds the address that agents follow.
type ListenConfig struct {
	Listen   string `yaml:"listen" doc:"HOST:PORT."`
	CAFile   string `yaml:"ca_file" doc:"PEM file of the authorities that sign certificates of agents, which carry the agents' names."`
	CertFile string `yaml:"cert_file" doc:"PEM file of the controller's certificate, read for every connection."`
	KeyFile  string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
}

// CollectorConfig names a collector.
type CollectorConfig struct {
	URL       string `yaml:"url" doc:"Page of the collector, or of the console of a fleet."`
	TokenFile string `yaml:"token_file" doc:"File with the page's token, where it wants one."`

	Probes       bool          `yaml:"probes" doc:"Also take hop values of probes from the page, which lists at most half of flows.top_flows."`
	LatencyFloor time.Duration `yaml:"latency_floor" range:"0s..1m" doc:"Added to times in switches before their ratio is taken. 0 is the time of 1500 bytes on the next line, by its rate in the topology, at least 10us."`
	QueueFloor   int64         `yaml:"queue_floor_bytes" range:"1..1000000000" doc:"The same for queues, in bytes (or in the device's unit)."`
}

// JournalConfig is the file of a journal.
type JournalConfig struct {
	File  string `yaml:"file" doc:"File of JSON lines. Empty keeps none: after a restart, devices alone know the plan."`
	Bytes int64  `yaml:"max_bytes" range:"65536..1099511627776" doc:"Bytes after which a new file is begun."`
	Keep  int    `yaml:"keep" range:"1..100" doc:"Files that are kept beside the current one."`
}

// ValidateSwitches returns everything that is wrong with the settings of switches.
func ValidateSwitches(switches []Switch, p *SwitchTLS) (errs []error) {
	seen, tls := map[string]bool{}, false
	for i := range switches {
		s := &switches[i]
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("switches["+strconv.Itoa(i)+"]"+format, args...))
		}
		switch {
		case s.Name == "":
			wrong(".name: is missing")
		case seen[s.Name]:
			wrong(".name: %q is there twice", s.Name)
		}
		seen[s.Name] = true
		if (s.Address == "") == (s.File == "") {
			wrong(": want either address or file")
		}
		if s.Load != "" && s.Load != loadNever && s.Load != loadIfEmpty && s.Load != loadAlways {
			wrong(".load: %q is none of %s, %s, %s", s.Load, loadNever, loadIfEmpty, loadAlways)
		}
		if s.Commit && s.Load != "" && s.Load != loadAlways {
			wrong(".load: %s contradicts commit", s.Load)
		}
		tls = tls || s.Address != "" && !s.Plaintext
	}
	if tls && (p.CAFile == "" || p.CertFile == "" || p.KeyFile == "") {
		errs = append(errs, errors.New("p4runtime: ca_file, cert_file and key_file are needed for switches without plaintext"))
	}
	return errs
}
