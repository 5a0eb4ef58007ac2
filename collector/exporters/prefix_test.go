package exporters

import (
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// One exporter is named by its address alone.
func TestProfileOfAddress(t *testing.T) {
	for _, c := range []struct{ prefix, in, out string }{
		{"10.0.0.5", "10.0.0.5", "10.0.0.6"},
		{"10.0.0.0/31", "10.0.0.1", "10.0.0.2"},
		{"::ffff:10.0.0.5", "10.0.0.5", "10.0.0.4"},
		{"2001:db8::5", "2001:db8::5", "2001:db8::6"},
	} {
		e := Config{Profile: "auto", Profiles: []Profile{{Prefix: c.prefix, Profile: "onos"}}}
		if err := e.Profiles[0].Validate(); err != nil {
			t.Error(err)
		}
		router, err := e.Router()
		if err != nil {
			t.Fatal(err)
		}
		for address, want := range map[string]string{c.in: "onos", c.out: "auto"} {
			if p := router.Profile(decode.AddrFrom(netip.MustParseAddr(address))); p.Name != want {
				t.Errorf("%s with prefix %s has profile %s, want %s", address, c.prefix, p.Name, want)
			}
		}
	}
	for _, wrong := range []string{"", "10.0.0", "10.0.0.5/33", "fe80::1%eth0", "leaf-1"} {
		if err := (&Profile{Prefix: wrong}).Validate(); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
