package collector

import (
	"context"
	"log/slog"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/inference/names"
)

// naming is what a collector knows of names. They reach people through the log, the page and the summary, and series in a
// measurement of their own; nothing that is computed depends on them.
type naming struct {
	inventory.Keeper
	teller inventory.Teller // of the goroutine that ends windows
}

// Names gives what nodes, interfaces and hosts are called at this moment. It may be called at any time.
func (c *Collector) Names() *names.Names { return c.naming.Names() }

func (n *naming) open(cfg *Config, analysis *Analysis, opt *Options) error {
	return OpenNames(&n.Keeper, cfg, analysis, opt)
}

// OpenNames reads the names that the settings name: those of the inventory, or else those of the topology, and those that the
// dialects have for drop reasons. Of the options it takes LoadNetwork and Profile.
func OpenNames(k *inventory.Keeper, cfg *Config, analysis *Analysis, opt *Options) error {
	var labels *names.Names
	if cfg.Inventory == "" && analysis.PINT.Topology != "" && opt.LoadNetwork != nil {
		network, err := opt.LoadNetwork(analysis.PINT.Topology)
		if err != nil {
			return err
		}
		sites, err := exporters.NewSites(&cfg.Exporters)
		if err != nil {
			return err
		}
		site, err := sites.OfMap(analysis.PINT.Site, network.Nodes)
		if err != nil {
			return err
		}
		labels = network.Names(uint32(site) << names.NodeBits)
	}
	return k.Open(cfg.Inventory, labels, cfg.Exporters.DropReasons(opt.Profile), cfg.Exporters.SiteNames())
}

// reload takes over another inventory, or the same again. The drop reasons stay those of the dialects at the start.
func (n *naming) reload(cfg *Config, log *slog.Logger) { n.Reload(cfg.Inventory, log) }

func (n *naming) watch(ctx context.Context, log *slog.Logger) { n.Watch(ctx, log) }

// tell gives the names that series are to have at the end of a window.
func (n *naming) tell(end int64) []names.Row { return n.teller.Rows(n.Names(), end) }

// problems says for the page that the names are old.
func (n *naming) problems() []string {
	if p := n.Problem(); p != "" {
		return []string{p}
	}
	return nil
}
