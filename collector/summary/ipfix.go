package summary

import (
	"fmt"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// IPFIXStatus describes an exporter of IPFIX or NetFlow 9 in words.
type IPFIXStatus struct {
	Source string // its address and port
	Text   string
}

// mostNamed bounds how many templates, or pairs of interfaces, a text names.
const mostNamed = 8

// IPFIX describes the exporters of IPFIX and NetFlow 9.
func IPFIX(all []ipfix.Status, addr func(decode.Addr) string) (list []IPFIXStatus) {
	for i := range all {
		s := &all[i]
		list = append(list, IPFIXStatus{fmt.Sprintf("%s port %d", addr(s.Source.Addr), s.Source.Port), ipfixText(s)})
	}
	return list
}

func ipfixText(s *ipfix.Status) string {
	parts := []string{fmt.Sprintf("%d template%s", s.Templates, plural(s.Templates))}
	for i, w := range s.Waiting {
		if i == mostNamed {
			parts = append(parts, fmt.Sprintf("waiting for %d more", len(s.Waiting)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("waiting for template %d of domain %d with %d data set%s", w.ID, w.Domain, w.Sets, plural(w.Sets)))
	}
	unknown, templates := uint64(0), 0
	for _, t := range s.Tallies {
		if t.Kind == ipfix.Other {
			unknown, templates = unknown+t.Records, templates+1
		}
	}
	for i, n := 0, 0; i < len(s.Tallies) && templates > 0; i++ {
		t := &s.Tallies[i]
		if t.Kind != ipfix.Other {
			continue
		}
		if n++; n > mostNamed {
			parts = append(parts, fmt.Sprintf("%d records of %d templates in all of which nothing is known", unknown, templates))
			break
		}
		parts = append(parts, fmt.Sprintf("%d record%s of template %d of domain %d, of which nothing is known", t.Records, plural(int(min(t.Records, 2))), t.ID, t.Domain))
	}
	for i := range s.Delays {
		if i == mostNamed {
			parts = append(parts, fmt.Sprintf("delays of %d more pairs of interfaces", len(s.Delays)-i))
			break
		}
		parts = append(parts, delayText(&s.Delays[i]))
	}
	return strings.Join(parts, "; ")
}

// delayText writes delays by their meaning.
func delayText(d *ipfix.DelayStats) string {
	through := ""
	if d.Ingress != 0 {
		through += fmt.Sprintf(" in by interface %d", d.Ingress)
	}
	if d.Egress != 0 {
		through += fmt.Sprintf(" out by interface %d", d.Egress)
	}
	return fmt.Sprintf("delay since the source by their clocks%s: %s to %s, mean %s, of %d packets in %d record%s", through,
		time.Duration(d.Min), time.Duration(d.Max), time.Duration(d.Mean), d.Packets, d.Records, plural(int(min(d.Records, 2))))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
