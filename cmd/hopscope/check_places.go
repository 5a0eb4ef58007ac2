package main

import (
	"fmt"

	"github.com/hopscope/hopscope/collector/settings"
)

// places lists all of them.
func places(cfg *config) (list []settings.Place) {
	spool := func(store string, on bool, dir string) {
		if on && dir != "" {
			list = append(list, settings.Place{Key: store + ".spool.dir", Path: dir, What: "the spool of " + store, Dir: true})
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
			list = append(list, settings.Place{Key: "alerts.file", Path: cfg.Alerts.File, What: "acknowledgements and mutes"})
		}
		list = append(list, settings.Place{Key: "alerts.state_file", Path: cfg.Alerts.StatePath(), What: "the alerts that are open"})
	}
	if cfg.IPFIX.Enabled && cfg.IPFIX.TemplatesFile != "" {
		list = append(list, settings.Place{Key: "ipfix.templates_file", Path: cfg.IPFIX.TemplatesFile, What: "the templates of IPFIX"})
	}
	if cfg.Parquet.Enabled && cfg.Parquet.Config.Dir != "" {
		list = append(list, settings.Place{Key: "parquet.dir", Path: cfg.Parquet.Config.Dir, What: "the files of parquet", Dir: true})
	}
	if p := cfg.JSONL.Config.Path; cfg.JSONL.Enabled && p != "" && p != "-" {
		list = append(list, settings.Place{Key: "jsonl.path", Path: p, What: "the lines of jsonl"})
	}
	if dir := cfg.History.Dir; cfg.History.Enabled && dir != "" {
		list = append(list, settings.Place{Key: "history.dir", Path: dir, What: "the history", Dir: true})
	}
	if p := cfg.Web.Access.Dir; cfg.Web.Listen != "" && p != "" {
		list = append(list, settings.Place{Key: "web.access.dir", Path: p, What: "the tokens and changes of the page", Dir: true})
	}
	for i, p := range cfg.PCAP.Files {
		if p != "" && p != "-" {
			list = append(list, settings.Place{Key: fmt.Sprintf("pcap.files[%d]", i), Path: p, What: "a capture that is read", Read: true})
		}
	}
	return list
}

// checkPlaces finds two things that share a place.
func checkPlaces(cfg *config, v *verdict) {
	for _, p := range settings.Overlaps(places(cfg)) {
		v.problem(p.Path, "%s", p.Text)
	}
}
