package collector

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/sink/notify"
)

// Config is how the engine runs: everything that does not depend on where reports come from and go to. A program embeds
// it in its settings, beside [Analysis] and the sections of its sources and stores.
type Config struct {
	Window            time.Duration `yaml:"window" doc:"Length of a window: every series has one point a window." range:"100ms..1h"`
	Instance          string        `yaml:"instance" doc:"Name of this collector, which every point carries: letters, digits, dots, dashes and underscores. Two collectors that write to one store need two names. Empty means the host's name."`
	Corrections       time.Duration `yaml:"corrections" doc:"How far the clock can be set back so that the windows it comes to again are merged with what was stored. Further back, the last window is kept open until the clock has passed it; 0 always does that." range:"0s..24h"`
	CorrectionsBytes  int64         `yaml:"corrections_bytes" doc:"Most memory of the windows kept for corrections; a full one shortens how far back they reach." range:"65536..17179869184"`
	Shards            int           `yaml:"shards" doc:"Goroutines that own flow tables. 0 means one for each CPU." range:"0..256"`
	ShardQueueBatches int           `yaml:"shard_queue_batches" doc:"Batches that may wait for a shard. A live source drops and counts what comes on top." range:"1..65536"`
	SeedFile          string        `yaml:"seed_file" doc:"File with at least 16 characters from which all random choices follow, among them the hash of flows: the collectors of a fleet share it. Empty draws a seed at every start. Keep it secret: whoever knows it can send flows that collide."`
	DrainTimeout      time.Duration `yaml:"drain_timeout" doc:"How long a stopping collector may take to write what it still holds." range:"0s..10m"`
	StateFile         string        `yaml:"state_file" doc:"File in which the numbers of exporters and the accounts survive a restart. Empty is the file collector.state in the directory of the first spool; without a spool there is none."`
	Inventory         string        `yaml:"inventory" doc:"File that says what nodes, interfaces and hosts are called, and how fast interfaces are (see docs/inventory.md). It is read again when it changes. Empty takes the names of nodes from pint.topology, where that has some."`
	Alerts            notify.Config `yaml:"alerts" doc:"Which findings are sent to webhook, alertmanager and syslog, and when (see docs/findings.md)."`
	Exporters         Exporters     `yaml:"exporters" doc:"Who sends, in which dialect."`
}

// Analysis is what is kept of reports, and what is concluded from it.
type Analysis struct {
	Flows  shard.Config  `yaml:"flows" doc:"What is kept of flows and hops. Sizes are for all shards together."`
	PINT   PINT          `yaml:"pint" doc:"What PINT digests can stand for."`
	Policy string        `yaml:"policy" doc:"File that says which ways flows may take (see docs/findings.md). Flows that take others are told of. It is read at the start. Empty lets all flows take any way."`
	Events events.Config `yaml:"events" doc:"When something is worth a finding."`
}

// Exporters says how the senders of reports are read.
type Exporters struct {
	Profile  string            `yaml:"profile" doc:"Dialect of exporters that no entry of profiles names (see docs/formats.md)."`
	Profiles []ExporterProfile `yaml:"profiles" doc:"Dialects by source address; the longest prefix wins."`
	// Recognise is one of "adopt", "suggest" and "off".
	Recognise string          `yaml:"recognise" doc:"What happens when profile auto cannot read an exporter and one other dialect explains all that it sends: adopt reads it with that from then on, suggest only tells, off does not look." oneof:"adopt|suggest|off"`
	Dialects  []Dialect       `yaml:"dialects" doc:"Dialects beside the built-in ones, each made of another one (docs/formats.md)."`
	Sites     []Site          `yaml:"sites" doc:"Parts of the network whose nodes have numbers of their own, by the addresses of their exporters (docs/inventory.md)."`
	Tracking  sequence.Config `yaml:"tracking" doc:"How sequence numbers are followed."`
}

// ExporterProfile gives one network of exporters its dialect.
type ExporterProfile struct {
	Prefix  string `yaml:"prefix" doc:"Source addresses, as 10.1.0.0/16, or one alone."`
	Profile string `yaml:"profile" doc:"Name of the dialect."`
}

// minSeed is the least number of characters of a seed file: as of a password that nobody guesses.
const minSeed = 16

// Seed gives the seed of all random choices: that of the file, or one that nobody can know.
func (c *Config) Seed() (uint64, error) {
	if c.SeedFile == "" {
		return rand.Uint64(), nil
	}
	text, err := os.ReadFile(c.SeedFile)
	if err != nil {
		return 0, fmt.Errorf("seed_file: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) < minSeed {
		return 0, fmt.Errorf("seed_file: %s has %d characters, want %d at least (openssl rand -hex 16)", c.SeedFile, len(text), minSeed)
	}
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:]), nil
}

// SetDefaults makes windows of ten seconds and a shard for each CPU.
func (c *Config) SetDefaults() {
	*c = Config{
		Window: 10 * time.Second, Corrections: 10 * time.Minute, CorrectionsBytes: 64 << 20,
		ShardQueueBatches: 64, DrainTimeout: 20 * time.Second,
		Exporters: Exporters{Profile: "auto", Recognise: recogniseAdopt, Tracking: sequence.DefaultConfig()},
	}
	c.Alerts.SetDefaults()
}

// SetDefaults keeps about half a million flows.
func (a *Analysis) SetDefaults() {
	*a = Analysis{Flows: shard.DefaultConfig(), PINT: DefaultPINT(), Events: events.DefaultConfig()}
}

func (c *Config) shards() int {
	if c.Shards > 0 {
		return c.Shards
	}
	return runtime.GOMAXPROCS(0)
}

// maxInstance bounds the name of an instance, in bytes. It is as long as a host name can be.
const maxInstance = 253

// Validate checks the name of the instance.
func (c *Config) Validate() error {
	if len(c.Instance) > maxInstance {
		return fmt.Errorf("instance: has %d characters, more than %d", len(c.Instance), maxInstance)
	}
	if i := strings.IndexFunc(c.Instance, notInName); i >= 0 {
		return fmt.Errorf("instance: %q holds more than letters, digits, dots, dashes and underscores", c.Instance)
	}
	return nil
}

// notInName reports whether an instance's name cannot hold r. Such a name needs no escaping in any store or query.
func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}

// InstanceName is the instance's name in the settings, or else that of the host with underscores for what no name can
// hold.
func (c *Config) InstanceName() string {
	if c.Instance != "" {
		return c.Instance
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unnamed"
	}
	name := strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, host)
	return name[:min(len(name), maxInstance)]
}

// Validate checks the dialects.
func (e *Exporters) Validate() error {
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

// Validate checks one entry. Its profile is checked by the list, which knows them all.
func (e *ExporterProfile) Validate() error {
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

// Router makes a decoder that reads each exporter as these settings say.
func (e *Exporters) Router() (*demux.Router, error) {
	router, err := newRouter(e)
	if err != nil {
		return nil, err
	}
	return router(), nil
}

// newRouter gives a function that makes routers, one a worker: the choice of dialects by source address.
func newRouter(e *Exporters) (func() *demux.Router, error) {
	fallback, err := e.profile(e.Profile)
	if err != nil {
		return nil, fmt.Errorf("exporters.profile: %w", err)
	}
	var routes []demux.Route
	for i, p := range e.Profiles {
		prefix, err := parsePrefix(p.Prefix)
		if err != nil {
			return nil, fmt.Errorf("exporters.profiles[%d].prefix: %w", i, err)
		}
		profile, err := e.profile(p.Profile)
		if err != nil {
			return nil, fmt.Errorf("exporters.profiles[%d].profile: %w", i, err)
		}
		routes = append(routes, demux.Route{Prefix: prefix, Profile: profile})
	}
	return func() *demux.Router { return demux.NewRouter(fallback, routes) }, nil
}
