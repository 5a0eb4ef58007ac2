package collector

import (
	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/names"
)

// OpenNames reads the names of the inventory, or else those of the topology, and the dialects' names of drop reasons.
// Of the options it uses LoadNetwork and Profile.
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
	reasons := cfg.Exporters.DropReasons(opt.Profile)
	if cfg.Exporters.ReadsSFlow(opt.Profile) {
		for r, name := range demux.SFlowReasons() {
			if reasons[r] == "" {
				reasons[r] = "sFlow: " + name
			}
		}
	}
	return k.Open(cfg.Inventory, labels, reasons, cfg.Exporters.SiteNames())
}
