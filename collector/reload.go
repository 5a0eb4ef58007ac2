package collector

import (
	"github.com/hopscope/hopscope/collector/settings"
)

// reloadable are the settings that a running collector can change.
var reloadable = []string{"exporters.profile", "exporters.profiles", "events"}

// unreloadable gives the changed settings that need a restart.
func unreloadable(old, new *Config) (keys []string) {
	for _, path := range settings.Diff(old, new) {
		if !settings.Below(path, reloadable...) {
			keys = append(keys, path)
		}
	}
	return keys
}
