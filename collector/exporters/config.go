// Package exporters holds the settings for decoding the reports of exporters: their dialects, and the sites that keep
// their nodes apart. It also has the nodes, links and plans from which shards infer the paths and values of PINT
// digests.
package exporters

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/inference/sequence"
)

// Config is the settings by which reports are decoded.
type Config struct {
	Profile  string    `yaml:"profile" doc:"Dialect of exporters that no entry of profiles names (docs/formats.md)."`
	Profiles []Profile `yaml:"profiles" doc:"Dialects by source address; the longest prefix wins."`
	// Recognise is one of "adopt", "suggest" and "off".
	Recognise string          `yaml:"recognise" doc:"Action when auto cannot read an exporter and one dialect explains all its reports: adopt it, suggest it in the log, or off." oneof:"adopt|suggest|off"`
	Dialects  []Dialect       `yaml:"dialects" doc:"Dialects beside the built-in ones, each made of another one (docs/formats.md)."`
	Sites     []Site          `yaml:"sites" doc:"Parts of the network with node numbers of their own, by addresses of exporters (docs/inventory.md)."`
	Metrics   MetricConfig    `yaml:"metrics" doc:"What metrics of OpenTelemetry mean, which otlp receives (docs/formats.md)."`
	Tracking  sequence.Config `yaml:"tracking" doc:"Tracking of sequence numbers."`
}

// Profile gives one network of exporters its dialect.
type Profile struct {
	Prefix  string `yaml:"prefix" doc:"Source addresses, as 10.1.0.0/16, or one alone."`
	Profile string `yaml:"profile" doc:"Name of the dialect."`
}

// The values of exporters.recognise.
const (
	recogniseAdopt   = "adopt"
	recogniseSuggest = "suggest"
	recogniseOff     = "off"
)

// Recognises reports whether dialects are to be recognised; a program that embeds the engine has to ask for it.
func (e *Config) Recognises() bool {
	return e.Recognise == recogniseAdopt || e.Recognise == recogniseSuggest
}

// Adopts reports whether a dialect that explains everything is to be used.
func (e *Config) Adopts() bool { return e.Recognise == recogniseAdopt }

// Candidates are all profiles that could be adopted.
func (e *Config) Candidates() ([]demux.Profile, error) {
	list := guess.Builtin()
	for i := range e.Dialects {
		p, err := e.profile(e.Dialects[i].Name)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// Validate checks the dialects.
func (e *Config) Validate() error {
	errs := e.validDialects()
	sites := e.validSites()
	if _, err := e.profile(e.Profile); err != nil && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("profile: %w", err))
	}
	for i := range e.Profiles {
		if _, err := e.profile(e.Profiles[i].Profile); err != nil && len(errs) == 0 {
			errs = append(errs, fmt.Errorf("profiles[%d].profile: %w", i, err))
		}
	}
	return errors.Join(append(errs, sites...)...)
}

// Validate checks one entry. The list checks its profile, because it has them all.
func (e *Profile) Validate() error {
	if _, err := parsePrefix(e.Prefix); err != nil {
		return fmt.Errorf("prefix: %q is neither a prefix such as 10.1.0.0/16 nor an address", e.Prefix)
	}
	return nil
}

// parsePrefix reads a prefix, or an address as the prefix that holds it alone.
func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err == nil {
		return p, nil
	}
	a, aerr := netip.ParseAddr(text)
	if aerr != nil || a.Zone() != "" {
		return p, err
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// Router makes a decoder that reads each exporter by these settings.
func (e *Config) Router() (*demux.Router, error) {
	router, err := e.Routers()
	if err != nil {
		return nil, err
	}
	return router(), nil
}

// Verbatim makes a router that reads each exporter by these settings, and leaves nothing out.
func (e *Config) Verbatim() (*demux.Router, error) {
	fallback, routes, err := e.routes()
	if err != nil {
		return nil, err
	}
	return demux.NewVerbatim(fallback, routes), nil
}

// Routers returns a function that makes routers, one a worker: the choice of dialects by source address.
func (e *Config) Routers() (func() *demux.Router, error) {
	fallback, routes, err := e.routes()
	if err != nil {
		return nil, err
	}
	return func() *demux.Router { return demux.NewRouter(fallback, routes) }, nil
}

// routes are the profiles of exporters by their addresses, and that of all others.
func (e *Config) routes() (fallback demux.Profile, routes []demux.Route, err error) {
	if fallback, err = e.profile(e.Profile); err != nil {
		return fallback, nil, fmt.Errorf("exporters.profile: %w", err)
	}
	for i, p := range e.Profiles {
		prefix, err := parsePrefix(p.Prefix)
		if err != nil {
			return fallback, nil, fmt.Errorf("exporters.profiles[%d].prefix: %w", i, err)
		}
		profile, err := e.profile(p.Profile)
		if err != nil {
			return fallback, nil, fmt.Errorf("exporters.profiles[%d].profile: %w", i, err)
		}
		routes = append(routes, demux.Route{Prefix: prefix, Profile: profile})
	}
	return fallback, routes, nil
}

// DropReasons returns the dialects' names of drop reasons. A number that two dialects in use name differently is left
// out: the device of a drop is not known where the drop is published. The public names count for numbers that no dialect
// has a list for.
func (e *Config) DropReasons(only *demux.Profile) map[uint8]string {
	used := e.used(only)
	reasons, unclear := map[uint8]string{}, map[uint8]bool{}
	public := false
	for _, p := range used {
		public = public || p.PublicReasons
		if p.Units.DropReasons == nil {
			continue
		}
		for r, name := range *p.Units.DropReasons {
			if before, ok := reasons[r]; ok && before != name {
				unclear[r] = true
			}
			reasons[r] = name
		}
	}
	if public {
		for r, name := range demux.PublicReasons() {
			reasons[r] = cmp.Or(reasons[r], name)
		}
	}
	for r := range unclear {
		delete(reasons, r)
	}
	return reasons
}

// used are the profiles that exporters can have by the settings, or only one.
func (e *Config) used(only *demux.Profile) (used []*demux.Profile) {
	if only != nil {
		return []*demux.Profile{only}
	}
	profiles := []string{e.Profile}
	for i := range e.Profiles {
		profiles = append(profiles, e.Profiles[i].Profile)
	}
	for _, name := range profiles {
		if p, err := e.profile(name); err == nil {
			used = append(used, &p)
		}
	}
	return used
}

// ReadsSFlow reports whether any of those profiles reads sFlow.
func (e *Config) ReadsSFlow(only *demux.Profile) bool {
	return slices.ContainsFunc(e.used(only), func(p *demux.Profile) bool { return p.SFlow })
}

// DefaultConfig reads each exporter as it shows itself.
func DefaultConfig() Config {
	return Config{Profile: "auto", Recognise: recogniseAdopt, Tracking: sequence.DefaultConfig(), Metrics: defaultMetrics()}
}
