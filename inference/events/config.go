package events

import "errors"

// A detector is a file of its own and what this file says of it: its place among the others, its settings with their
// defaults, and the version of the state.

// detectors makes all of them, in the order in which they tell their findings.
func detectors(j *journal) []detector {
	return []detector{
		newPaths(j),
		newDrops(j),
		newDigests(j),
		newExporters(j),
		newHops(j),
	}
}

// stateVersion goes up when detectors are added or left out, and when what one of them remembers changes.
const stateVersion = 2

// Config says when something is worth a finding. Times are counted in windows. It consists of the limits and of the
// settings of each detector, which are beside the detector.
type Config struct {
	MaxHops  int `yaml:"max_hops" doc:"Hops whose history is kept." range:"1..1048576"`
	MaxFlows int `yaml:"max_flows" doc:"Flows with a changing path that get a finding of their own; further ones share one." range:"1..1048576"`
	MaxDrops int `yaml:"max_drops" doc:"Pairs of node and drop reason that are followed at the same time." range:"1..1048576"`

	HopConfig
	PathConfig
	DropConfig
	DigestConfig
	ExporterConfig
}

// DefaultConfig suits windows of one to ten seconds.
func DefaultConfig() Config {
	return Config{
		MaxHops: 8192, MaxFlows: 1024, MaxDrops: 4096,
		HopConfig: defaultHopConfig, PathConfig: defaultPathConfig, DropConfig: defaultDropConfig,
		DigestConfig: defaultDigestConfig, ExporterConfig: defaultExporterConfig,
	}
}

// Validate reports what the ranges of the fields cannot say.
func (c *Config) Validate() error {
	return errors.Join(append(c.HopConfig.problems(), c.ExporterConfig.problems()...)...)
}
