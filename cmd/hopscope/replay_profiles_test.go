package main_test

import (
	"strings"
	"testing"
)

// TestReplayProfiles holds that a capture is read in the dialects that the settings give its exporters, unless a flag says otherwise.
func TestReplayProfiles(t *testing.T) {
	config := settingsFile(t, "exporters: {recognise: \"off\", profiles: [{prefix: 0.0.0.0/0, profile: onos}]}\n")
	const file = captures + "onos-int10-reports.pcap"
	for flags, want := range map[string]bool{"": true, "--profile auto": false, "--report-port 32766": false} {
		out := must(t, append([]string{"replay", file, "--config", config}, strings.Fields(flags)...)...)
		if !strings.HasPrefix(out, "200 reports") || strings.Contains(out, "telemetry-report int-stack  200") != want {
			t.Errorf("with %q:\n%s", flags, out)
		}
	}
}
