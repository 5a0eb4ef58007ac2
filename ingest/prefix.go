package ingest

import (
	"errors"
	"fmt"
	"net/netip"
)

// Prefixes reads the prefixes (192.0.2.0/24) and addresses of the setting key, and names all that are neither.
func Prefixes(key string, list []string) ([]netip.Prefix, error) {
	var (
		out  []netip.Prefix
		errs []error
	)
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(s); err == nil {
				a = a.Unmap().WithZone("")
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is neither a prefix such as 192.0.2.0/24 nor an address", key, s))
			continue
		}
		out = append(out, p.Masked())
	}
	return out, errors.Join(errs...)
}
