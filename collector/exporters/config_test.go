package exporters

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Dialects of the settings are used by name, report their errors, and are tried on frames that no profile reads.
func TestDialectSettings(t *testing.T) {
	e := Config{Profile: "my-switch", Recognise: "adopt", Dialects: []Dialect{
		{Name: "my-switch", Base: "onos", DSCP: 0x2a, DSCPMask: 0x3f, Units: DialectUnits{QueueBytes: 80}, Wrong: []string{"latency"},
			DropReasons: []DialectReason{{29, "no route"}}, Domains: []DialectDomain{{ID: 0xabcd, SourceWords: []uint8{1, 2}}}},
		{Name: "my-other", Base: "my-switch", Without: []string{"int-version-0"}, Ports: []uint16{5000}, ReportPorts: []uint16{6000}},
	}}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := e.Lookup("my-other")
	if err != nil || p.INT.Version0 || !p.Report.FlagsFirst || p.Units.QueueBytes != 80 || p.Units.TimeNS != 1000 || p.INT.DSCP != 0x2a ||
		!slices.Equal(p.ReportPorts, []uint16{6000}) || !slices.Equal(p.INT.Ports, []uint16{5000}) || p.Units.DropReason(29) != "no route" ||
		len(p.INT.Domains) != 1 || p.INT.Domains[0].SourceWords[1] != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if n := len(e.Describe()); n != len(e.ProfileNames()) {
		t.Errorf("%d profiles are described, of %d", n, len(e.ProfileNames()))
	}
	list, err := e.Candidates()
	if err != nil || list[len(list)-1].Name != "my-other" {
		t.Errorf("candidates: %v", err)
	}
	if base, _ := (&Config{}).Lookup("onos"); base.Units.QueueBytes != 1 || base.INT.DSCP != 0x17 {
		t.Error("the base was changed")
	}
	for _, c := range []struct {
		change func(d *Dialect)
		want   string
	}{
		{func(d *Dialect) { d.Name = "My Switch" }, "name: \"My Switch\" is no name"},
		{func(d *Dialect) { d.Name = "geant" }, "dialects[0].name: there is a profile \"geant\" already"},
		{func(d *Dialect) { d.Base = "my-other" }, "dialects[0].base: \"my-other\" is none of auto"},
		{func(d *Dialect) { d.With = []string{"flags"} }, "with[0]: \"flags\" is none of report-flags-first"},
		{func(d *Dialect) { d.With, d.Without = []string{"int-tunnels"}, []string{"int-tunnels"} }, "without[0]: \"int-tunnels\" is in the list with"},
		{func(d *Dialect) { d.DSCP, d.DSCPMask = 0x20, 0x1f }, "dscp: 32 has bits outside of dscp_mask 31"},
		{func(d *Dialect) { d.Wrong = []string{"speed"} }, "wrong_fields: \"speed\" is none of node_id"},
		{func(d *Dialect) { d.INT = []string{"0.5"} }, "dialects[0]: int-version-0 and INT 0.5 exclude each other"},
		{func(d *Dialect) { d.Domains[0].SourceWords = make([]uint8, 17) }, "domains[0].source_words: has 17 entries"},
		{func(d *Dialect) { d.Base = "int-path" }, ""},
	} {
		d := e.Dialects[0]
		d.Domains = slices.Clone(d.Domains)
		c.change(&d)
		x := Config{Profile: "auto", Dialects: []Dialect{d}}
		err := fmt.Sprint(d.Validate(), "\n", x.Validate())
		if c.want != "" && !strings.Contains(err, c.want) || c.want == "" && err != "<nil>\n<nil>" {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}

// TestDropReasons checks that names of drop reasons come from the dialects in use, and none where two of them
// disagree.
func TestDropReasons(t *testing.T) {
	if got := (&Config{Profile: "auto"}).DropReasons(nil); got[80] != "denied by access list" || got[60] != "" {
		t.Errorf("auto names %v", got)
	}
	if got := (&Config{Profile: "geant"}).DropReasons(nil); len(got) != 0 {
		t.Errorf("geant, which reports no drops, names %v", got)
	}
	other := &Config{Profile: "auto", Profiles: []Profile{{"10.0.0.0/8", "mine"}}, Dialects: []Dialect{{Name: "mine", Base: "host-int", DropReasons: []DialectReason{{Reason: 80, Name: "full"}}}}}
	if got := other.DropReasons(nil); got[80] != "full" || got[29] != "no route" {
		t.Errorf("beside a dialect with a list of its own, the public names are %v", got)
	}
	got := (&Config{Profile: "auto", Profiles: []Profile{{"10.0.0.0/8", "fabric-tna"}}}).DropReasons(nil)
	if len(got) == 0 {
		t.Error("fabric-tna names no drop reasons")
	}
	own := &Config{Profile: "auto", Profiles: []Profile{{"10.0.0.0/8", "mine"}},
		Dialects: []Dialect{{Name: "mine", Base: "fabric-tna", DropReasons: []DialectReason{{Reason: 200, Name: "no service"}}}}}
	if all := own.DropReasons(nil); all[200] != "no service" || len(all) <= len(got) {
		t.Errorf("a dialect of the settings names %v", all)
	}
}
