package notify

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Config is the settings of what is sent, and how often.
type Config struct {
	Severity    string        `yaml:"severity" doc:"Least severity of findings that are sent." oneof:"info|warning|critical"`
	Learning    bool          `yaml:"learning" doc:"Send findings of places whose usual state is being learnt."`
	Repeat      time.Duration `yaml:"repeat" doc:"Interval at which open alerts are sent again until acknowledged. 0 is never." range:"0s..8760h"`
	Heartbeat   time.Duration `yaml:"heartbeat" doc:"Interval of heartbeats. 0 is never." range:"0s..24h"`
	Forget      time.Duration `yaml:"forget" doc:"Time after a restart until open alerts that are not found again are resolved." range:"1m..24h"`
	File        string        `yaml:"file" doc:"File of acknowledged, accepted and muted findings. Relative paths start at the working directory."`
	StateFile   string        `yaml:"state_file" doc:"File of open alerts, for restarts. Empty is the name of file with .state."`
	Maintenance []Mute        `yaml:"maintenance" doc:"Maintenance of a part of the network, from which no findings are sent."`
	Runbook     string        `yaml:"runbook" doc:"Address of a copy of docs/findings.md for the runbook_url of alerts. Empty is /docs/findings of the collector's page."`
	MaxOpen     int           `yaml:"max_open" doc:"Most open alerts; further ones are only counted." range:"1..1000000"`
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() {
	*c = Config{Severity: "warning", Repeat: 4 * time.Hour, Heartbeat: 5 * time.Minute, Forget: 15 * time.Minute, File: "alerts.yaml", MaxOpen: 10_000}
}

// Validate returns the errors that the ranges of single values do not show. Each mute of Maintenance is validated by
// itself.
func (c *Config) Validate() error {
	if u, err := url.Parse(c.Runbook); c.Runbook != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Contains(c.Runbook, "#")) {
		return fmt.Errorf("runbook: %q is no address such as https://wiki.example/findings, without #", c.Runbook)
	}
	if c.File == "" && c.StateFile == "" {
		return errors.New("state_file: is empty, and so is file, whose name it would have")
	}
	return nil
}

// CheckFiles reads the file of acknowledgements and mutes, if it exists.
func (c *Config) CheckFiles() error {
	if c.File == "" {
		return nil
	}
	if _, err := ReadRules(c.File); err != nil {
		return fmt.Errorf("file: %w", err)
	}
	return nil
}

// StatePath returns the path of the state file.
func (c *Config) StatePath() string {
	if c.StateFile != "" {
		return c.StateFile
	}
	return c.File + ".state"
}
