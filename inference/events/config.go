package events

import "errors"

// A detector is a file of its own and what this file says of it: its place among the others, its settings with their
// defaults, and the version of the state.

// detectors makes all of them, in the order in which they publish their findings.
func detectors(j *journal) []detector {
	l, h := newWires(j), newHops(j)
	return []detector{
		l, // first: others ask it what is behind an interface
		newPaths(j, l),
		newDrops(j),
		newOffPolicy(j),
		newInventory(j), // before the detector of strange digests, of which it explains some
		newDigests(j, l),
		newExporters(j),
		newInterfaces(j),
		h,
		newFlows(j, h), // behind that of hops, whose limits it takes
		newTransits(j),
		newSilent(j),
		newFormer(j),
		newCauses(j, l, h), // last: it groups the findings of the others
	}
}

// stateVersion goes up when detectors are added or left out, and when what one of them remembers changes.
const stateVersion = 12

// oldestVersion is the oldest one that is read, so that programs of two versions can take turns. What version 2 remembered of
// hops is of no use to the present detector: its open findings end, and hops are learnt anew. Before version 5 there are no signs of causes and no outages, before version 6 no uses of hops, before version 8 no counts of interfaces; before version 10 the node with the id 0, among those whose reports are not complete, is none; before version 11 findings have no paths, before version 12 they do not say
// whether they rest.
const oldestVersion = 2

// Config says when something is worth a finding. Times are counted in windows. It consists of the limits and of the
// settings of each detector, which are beside the detector.
type Config struct {
	MaxHops  int `yaml:"max_hops" doc:"Hops whose history is kept." range:"1..1048576"`
	MaxFlows int `yaml:"max_flows" doc:"Flows with a changing path that get a finding of their own; further ones share one." range:"1..1048576"`
	MaxDrops int `yaml:"max_drops" doc:"Pairs of node and drop reason that are followed at the same time." range:"1..1048576"`

	HopConfig
	FlowConfig
	PathConfig
	DropConfig
	PolicyConfig
	DigestConfig
	InventoryConfig
	ExporterConfig
	InterfaceConfig
	LinkConfig
	SilentConfig
	CauseConfig
}

// DefaultConfig suits windows of one to ten seconds.
func DefaultConfig() Config {
	return Config{
		MaxHops: 8192, MaxFlows: 1024, MaxDrops: 4096,
		HopConfig: defaultHopConfig, FlowConfig: defaultFlowConfig, PathConfig: defaultPathConfig, DropConfig: defaultDropConfig, PolicyConfig: defaultPolicyConfig,
		DigestConfig: defaultDigestConfig, InventoryConfig: defaultInventoryConfig, ExporterConfig: defaultExporterConfig, InterfaceConfig: defaultInterfaceConfig,
		LinkConfig: defaultLinkConfig, SilentConfig: defaultSilentConfig, CauseConfig: defaultCauseConfig,
	}
}

// Validate reports what the ranges of the fields cannot say.
func (c *Config) Validate() error {
	return errors.Join(c.ExporterConfig.problems()...)
}
