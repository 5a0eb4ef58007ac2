package events

import (
	"errors"
	"fmt"
	"time"
)

// Config says when something is worth a finding. Times are counted in windows.
type Config struct {
	MaxHops  int `yaml:"max_hops" doc:"Hops whose history is kept." range:"1..1048576"`
	MaxFlows int `yaml:"max_flows" doc:"Flows with a changing path that get a finding of their own; further ones share one." range:"1..1048576"`
	MaxDrops int `yaml:"max_drops" doc:"Pairs of node and drop reason that are followed at the same time." range:"1..1048576"`

	History       int           `yaml:"history" doc:"Past windows of a hop that its baseline is made of." range:"10..1440"`
	Warmup        int           `yaml:"warmup" doc:"Windows of a hop before it is judged." range:"5..1440"`
	MinRecords    uint64        `yaml:"min_records" doc:"Hop records that a window must have to be judged." range:"1..1000000000"`
	Threshold     float64       `yaml:"threshold" doc:"Limit above the median, in robust standard deviations." range:"3..100"`
	RelativeFloor float64       `yaml:"relative_floor" doc:"Smallest distance of the limit from the median, as a share of the median." range:"0.05..100"`
	LatencyFloor  time.Duration `yaml:"latency_floor" doc:"Smallest distance of the limit from the median for latencies." range:"1ns..1m"`
	QueueFloor    uint64        `yaml:"queue_floor_bytes" doc:"Smallest distance of the limit from the median for queues, in bytes (or in the device's unit, where its profile knows no size)." range:"1..1000000000"`
	Critical      float64       `yaml:"critical" doc:"A hop is critical this many times as far above its median as the limit is." range:"1..1000"`
	StartAfter    int           `yaml:"start_after" doc:"Windows in a row above the limit that start a finding." range:"1..100"`
	EndAfter      int           `yaml:"end_after" doc:"Quiet windows in a row that end a finding." range:"1..1000"`
	LearnAfter    int           `yaml:"learn_after" doc:"Windows in a row above the limit after which they are learnt as the new normal." range:"1..100000"`
	ForgetAfter   int           `yaml:"forget_after" doc:"Windows without records after which the history of a hop is forgotten." range:"1..1000000"`

	PathGroup   int `yaml:"path_group" doc:"Flows that leave the same hop in one window and share one finding." range:"2..1000000"`
	PathStable  int `yaml:"path_stable" doc:"Windows without a change that end the finding of a flow's path." range:"1..1000"`
	PathFlaps   int `yaml:"path_flaps" doc:"Changes during one finding that make it a warning." range:"2..1000000"`
	DropsSevere int `yaml:"drops_severe" doc:"Drop reports of one node and reason in one window that are critical." range:"1..1000000000"`

	DigestsStrange uint64 `yaml:"digests_strange" doc:"PINT digests of a flow that no path can have written, in one window, that are worth a finding." range:"1..1000000000"`

	LossRatio    float64 `yaml:"loss_ratio" doc:"Share of an exporter's reports whose loss is worth a finding." range:"0..1"`
	LossSevere   float64 `yaml:"loss_severe" doc:"Share of an exporter's reports whose loss is critical." range:"0..1"`
	SilenceAfter int     `yaml:"silence_after" doc:"Windows without a report, of an exporter that reports regularly, that are silence." range:"1..100000"`
	SilentSevere int     `yaml:"silence_severe" doc:"Windows of silence that are critical." range:"1..1000000"`
}

// DefaultConfig suits windows of one to ten seconds.
func DefaultConfig() Config {
	return Config{
		MaxHops: 8192, MaxFlows: 1024, MaxDrops: 4096,
		History: 60, Warmup: 30, MinRecords: 20, Threshold: 7, RelativeFloor: 0.5,
		LatencyFloor: time.Microsecond, QueueFloor: 24, Critical: 4,
		StartAfter: 2, EndAfter: 3, LearnAfter: 120, ForgetAfter: 3600,
		PathGroup: 5, PathStable: 3, PathFlaps: 4, DropsSevere: 1000,
		DigestsStrange: 10,
		LossRatio:      0.0001, LossSevere: 0.05, SilenceAfter: 3, SilentSevere: 30,
	}
}

// Validate reports what the ranges of the fields cannot say.
func (c *Config) Validate() error {
	var errs []error
	if c.Warmup > c.History {
		errs = append(errs, fmt.Errorf("warmup: %d is more than the history of %d", c.Warmup, c.History))
	}
	if c.LossSevere < c.LossRatio {
		errs = append(errs, fmt.Errorf("loss_severe: %g is less than the loss_ratio of %g", c.LossSevere, c.LossRatio))
	}
	if c.SilentSevere < c.SilenceAfter {
		errs = append(errs, fmt.Errorf("silence_severe: %d is less than the silence_after of %d", c.SilentSevere, c.SilenceAfter))
	}
	return errors.Join(errs...)
}
