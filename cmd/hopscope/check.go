package main

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// check is a check of the settings as a whole, after every value was checked against its range.
type check func(cfg *config, v *verdict)

// checks are all of them, one a line. They open nothing that stays open and write nothing.
var checks = []check{
	checkRegular, // before anything is read
	checkFiles,
	checkPorts,
	checkPINT,
	checkPlaces,
	checkStores,
	checkEnvironment,
	checkSecrets,
	checkExposure,
	checkFleet,
	checkFleetExposure,
	checkMemory,
	checkSensitivity,
}

// verdict is the result of the checks: problems, with which nothing runs, and warnings.
type verdict struct {
	file               *settings.File
	dry                bool
	odd                bool // a file that is named is no file, and not to be read
	problems, warnings []settings.Problem
}

// problem adds what is wrong with the setting at the path.
func (v *verdict) problem(path, format string, args ...any) {
	v.problems = append(v.problems, settings.Problem{Line: v.file.Line(path), Path: path, Text: fmt.Sprintf(format, args...)})
}

// warn adds what is doubtful about the setting at the path.
func (v *verdict) warn(path, format string, args ...any) {
	v.warnings = append(v.warnings, settings.Problem{Line: v.file.Line(path), Path: path, Text: fmt.Sprintf(format, args...)})
}

// examine holds the settings against their ranges and rules, unless loading has done so and gave err, and against all
// checks. All problems are in one error.
// With dry set nothing is going to run, so that what another environment may have is a warning.
func examine(cfg *config, err error, dry bool) (warnings []settings.Problem, _ error) {
	v := verdict{file: cfg.file, dry: dry}
	name := "settings"
	if v.file != nil {
		name = v.file.Name
		v.warnings = append(v.warnings, v.file.Warnings...)
	} else if err == nil {
		err = settings.Check(cfg)
	}
	if p := (*settings.Problems)(nil); errors.As(err, &p) {
		v.problems = append(v.problems, p.List...)
	} else if err != nil {
		return nil, wrongInput(err)
	}
	for _, c := range checks {
		c(cfg, &v)
	}
	return v.warnings, wrongInput(settings.NewProblems(name, v.problems))
}

// checkFiles reads the files that settings name.
func checkFiles(cfg *config, v *verdict) {
	if v.odd {
		return
	}
	if _, err := cfg.Seed(); err != nil {
		v.problem("seed_file", "%s", strings.TrimPrefix(err.Error(), "seed_file: "))
	}
	if cfg.Inventory != "" {
		if _, err := inventory.ReadFile(cfg.Inventory, cfg.Exporters.SiteNames()); err != nil {
			v.problem("inventory", "%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "inventory: "), "inventory "+cfg.Inventory, cfg.Inventory))
		}
	}
	checkPolicy(cfg, v)
	for _, p := range settings.CheckFiles(cfg) {
		v.problem(p.Path, "%s", p.Text)
	}
}

// checkPolicy reads the policy, with the names that it may use.
func checkPolicy(cfg *config, v *verdict) {
	var keeper inventory.Keeper
	if cfg.Policy == "" || collector.OpenNames(&keeper, &cfg.Config, &cfg.Analysis, &collector.Options{LoadNetwork: loadNetwork}) != nil {
		return // errors of names are reported with the inventory or the topology
	}
	if _, err := inventory.ReadWaysFile(cfg.Policy, keeper.Names()); err != nil {
		v.problem("policy", "%s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "policy: "), "policy "+cfg.Policy+": ", ""))
	}
}

// checkPINT reads the networks of PINT and of the page, and the plans of PINT.
func checkPINT(cfg *config, v *verdict) {
	if v.odd {
		return
	}
	if t := cfg.PINT.Topology; t != "" {
		if _, err := loadNetwork(t); err != nil {
			v.problem("pint.topology", "%s", strings.TrimPrefix(err.Error(), "topology "))
		}
	}
	if t := cfg.Web.Topology; t != "" {
		if _, err := load.Topology(t); err != nil {
			v.problem("web.topology", "%s", strings.TrimPrefix(err.Error(), "topology "))
		}
	}
	for i, file := range cfg.PINT.Plans {
		if _, err := pintplan.ReadFile(file); err != nil {
			v.problem(fmt.Sprintf("pint.plans[%d]", i), "%s", strings.TrimPrefix(err.Error(), "plan "))
		}
	}
}

// checkSensitivity reports the number of statistics from which limits are extrapolated, where fewer false findings are
// accepted than by default. Limits follow from their number in powers of two.
func checkSensitivity(cfg *config, v *verdict) {
	e := &cfg.Events
	const path = "events.false_a_day"
	wrong := slices.ContainsFunc(v.problems, func(p settings.Problem) bool { return p.Path == path })
	if e.FalseADay >= events.DefaultConfig().FalseADay || wrong {
		return
	}
	most := int(e.FalseShare(1, cfg.Window) / detect.LeastMeasured)
	if most > 0 {
		most = 1 << (bits.Len(uint(most)) - 1)
	}
	v.warn(path, "%g false findings a day in windows of %v are fewer than were measured if more than %d statistics are judged: the limits are extrapolated. "+
		"Latency, queue and utilisation of a hop are three, the latency of each of %d busy flows and the time on each link are one",
		e.FalseADay, cfg.Window, most, e.BusyFlows)
}

// checkStores looks for stores that exclude each other.
func checkStores(cfg *config, v *verdict) {
	if err := collector.CheckStores(cfg); err != nil {
		path, text, _ := strings.Cut(err.Error(), ": ")
		v.problem(path, "%s", text)
	}
}

// checkFleet looks for what all members of a fleet need.
func checkFleet(cfg *config, v *verdict) {
	if cfg.Kafka.Enabled && cfg.SeedFile == "" {
		v.problem("seed_file", "is missing: all members of a fleet share a seed, which decides where a flow is merged (openssl rand -hex 16)")
	}
}

// checkEnvironment looks for the variables that settings name.
func checkEnvironment(cfg *config, v *verdict) {
	report := v.problem
	if v.dry {
		report = v.warn
	}
	if name := cfg.Kafka.Config.PasswordEnv; cfg.Kafka.Enabled && name != "" && strings.TrimSpace(os.Getenv(name)) == "" {
		report("kafka.password_env", "the environment variable %s is not set", name)
	}
	if name := cfg.Influx.Config.TokenEnv; cfg.Influx.Enabled && name != "" && strings.TrimSpace(os.Getenv(name)) == "" {
		report("influx.token_env", "the environment variable %s is not set", name)
	}
}
