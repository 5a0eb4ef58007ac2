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
	Learning    bool          `yaml:"learning" doc:"Send findings of places whose normal state is not known well yet."`
	Repeat      time.Duration `yaml:"repeat" doc:"How often what is still open is sent again, unless it was acknowledged. 0 means never." range:"0s..8760h"`
	Heartbeat   time.Duration `yaml:"heartbeat" doc:"How often a sign of life is sent, so that a receiver can distinguish a quiet network from a collector that is gone. 0 means never." range:"0s..24h"`
	Forget      time.Duration `yaml:"forget" doc:"What was open when the program ended, and is not found again within this time of the next run, is resolved." range:"1m..24h"`
	File        string        `yaml:"file" doc:"File of what people acknowledged, accepted and muted, which hopscope findings changes; it is read again when it changes. A relative path is in the working directory."`
	StateFile   string        `yaml:"state_file" doc:"File that keeps what is open over restarts. Empty means the name of file with .state behind it."`
	Maintenance []Mute        `yaml:"maintenance" doc:"When work is done on a part of the network: what is found there is not sent."`
	Runbook     string        `yaml:"runbook" doc:"Address of a copy of docs/findings.md, to whose section of the kind alerts point as runbook_url. Empty is /docs/findings of the collector's own page."`
	MaxOpen     int           `yaml:"max_open" doc:"Most alerts that are open at a time; further ones are counted and not sent one by one." range:"1..1000000"`
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
