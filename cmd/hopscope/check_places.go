package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// place is where something is written, or read, for as long as a collector runs.
type place struct {
	key, path string // of the setting
	what      string // "the spool of influx"
	dir, read bool
}

// places lists all of them.
func places(cfg *config) (list []place) {
	spool := func(store string, on bool, dir string) {
		if on && dir != "" {
			list = append(list, place{key: store + ".spool.dir", path: dir, what: "the spool of " + store, dir: true})
		}
	}
	spool("influx", cfg.Influx.Enabled && cfg.Influx.Spool.Enabled, cfg.Influx.Spool.Dir)
	spool("parquet", cfg.Parquet.Enabled && cfg.Parquet.Spool.Enabled, cfg.Parquet.Spool.Dir)
	spool("jsonl", cfg.JSONL.Enabled && cfg.JSONL.Spool.Enabled, cfg.JSONL.Spool.Dir)
	spool("kafka", cfg.Kafka.Enabled && cfg.Kafka.Spool.Enabled, cfg.Kafka.Spool.Dir)
	spool("webhook", cfg.Webhook.Enabled && cfg.Webhook.Spool.Enabled, cfg.Webhook.Spool.Dir)
	spool("alertmanager", cfg.Alertmanager.Enabled && cfg.Alertmanager.Spool.Enabled, cfg.Alertmanager.Spool.Dir)
	spool("syslog", cfg.Syslog.Enabled && cfg.Syslog.Spool.Enabled, cfg.Syslog.Spool.Dir)
	if cfg.Webhook.Enabled || cfg.Alertmanager.Enabled || cfg.Syslog.Enabled {
		if cfg.Alerts.File != "" {
			list = append(list, place{key: "alerts.file", path: cfg.Alerts.File, what: "acknowledgements and mutes"})
		}
		list = append(list, place{key: "alerts.state_file", path: cfg.Alerts.StatePath(), what: "the alerts that are open"})
	}
	if cfg.Parquet.Enabled && cfg.Parquet.Config.Dir != "" {
		list = append(list, place{key: "parquet.dir", path: cfg.Parquet.Config.Dir, what: "the files of parquet", dir: true})
	}
	if p := cfg.JSONL.Config.Path; cfg.JSONL.Enabled && p != "" && p != "-" {
		list = append(list, place{key: "jsonl.path", path: p, what: "the lines of jsonl"})
	}
	for i, p := range cfg.PCAP.Files {
		if p != "" && p != "-" {
			list = append(list, place{key: fmt.Sprintf("pcap.files[%d]", i), path: p, what: "a capture that is read", read: true})
		}
	}
	return list
}

// checkPlaces finds two things that share a place, by whatever names, or of which one lies in the directory of the other.
func checkPlaces(cfg *config, v *verdict) {
	list := places(cfg)
	for i := range list {
		for k := range i {
			a, b := &list[k], &list[i]
			if a.read && b.read {
				continue // a capture may be read under two names
			}
			switch pa, pb := resolve(a.path), resolve(b.path); {
			case pa == pb || sameFile(pa, pb):
				v.problem(b.key, "%s is also where %s are kept (%s); each needs a place of its own", b.path, a.what, a.key)
			case a.dir && strings.HasPrefix(pb, pa+string(filepath.Separator)):
				v.problem(b.key, "%s lies inside of %s, where %s are kept (%s)", b.path, a.path, a.what, a.key)
			case b.dir && strings.HasPrefix(pa, pb+string(filepath.Separator)):
				v.problem(b.key, "%s holds %s, where %s are kept (%s)", b.path, a.path, a.what, a.key)
			}
		}
	}
}

// resolve gives one name to all names of a file that may not be there yet: what exists of its path is followed through
// symbolic links.
func resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for p := path; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(p)
		if up == p {
			return path
		}
		p, rest = up, filepath.Join(filepath.Base(p), rest)
	}
}

// sameFile reports whether both are there and are one, as two mounts of a file system can make them.
func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}
