package inventory

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// ReadWaysFile reads a file with the paths that flows may take. Without a path it returns no policy.
//
// A file is YAML, or JSON, which is YAML as well:
//
//	rules:
//	  - name: web through a firewall
//	    dst: 10.0.1.0/24
//	    protocol: tcp
//	    dst_port: 443
//	    via: [leaf-1, [fw-1, fw-2]]
//	    avoid: [core-9]
//	  - name: backup
//	    src: 10.0.9.0/24
//	    paths: [[leaf-9, spine-1, leaf-2], [leaf-9, spine-2, leaf-2]]
//
// Nodes are written by their numbers, or by names of the inventory or the topology. The first rule that matches a flow
// counts. [inference.PolicyRule] defines the keys. Names are the present ones: a later change of a name changes no
// rule.
func ReadWaysFile(path string, called *names.Names) (*inference.Policy, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return readWays(path, b, called)
}

// readWays reads what a file of this name holds.
func readWays(name string, b []byte, called *names.Names) (*inference.Policy, error) {
	if len(b) > maxBytes {
		return nil, fmt.Errorf("policy %s: more than %d bytes", name, maxBytes)
	}
	if err := settings.CheckYAML("policy "+name, b); err != nil {
		return nil, err
	}
	var doc document
	if err := yaml.UnmarshalWithOptions(b, &doc, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("policy %s: %s", name, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if len(doc.Rules) == 0 {
		return nil, fmt.Errorf("policy %s: there are no rules", name)
	}
	ids, twice := numbers(called)
	rules := make([]inference.PolicyRule, len(doc.Rules))
	var errs []error
	for i := range doc.Rules {
		var err error
		if rules[i], err = doc.Rules[i].read(ids, twice); err != nil {
			errs = append(errs, fmt.Errorf("policy %s: rule %d (%.64s): %w", name, i+1, doc.Rules[i].Name, err))
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	p, err := inference.NewPolicy(rules)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

type document struct {
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Name     string     `yaml:"name"`
	Src      string     `yaml:"src"`
	Dst      string     `yaml:"dst"`
	Protocol string     `yaml:"protocol"`
	SrcPort  string     `yaml:"src_port"`
	DstPort  string     `yaml:"dst_port"`
	Via      []anyOf    `yaml:"via"`
	Avoid    []string   `yaml:"avoid"`
	Paths    [][]string `yaml:"paths"`
}

// anyOf is a node, or a list of alternatives.
type anyOf []string

// UnmarshalYAML reads either.
func (a *anyOf) UnmarshalYAML(b []byte) error {
	var list []string
	if err := yaml.Unmarshal(b, &list); err == nil {
		*a = list
		return nil
	}
	var one string
	if err := yaml.Unmarshal(b, &one); err != nil {
		return errors.New("via: an entry is a node, or a list of nodes of which one is passed")
	}
	*a = anyOf{one}
	return nil
}

// numbers returns the numbers of nodes by their names, and the names that several nodes have.
func numbers(called *names.Names) (ids map[string]uint32, twice map[string]bool) {
	ids, twice = map[string]uint32{}, map[string]bool{}
	for _, n := range called.Document().Nodes {
		if n.Name == "" {
			continue
		}
		_, known := ids[n.Name]
		twice[n.Name] = known
		ids[n.Name] = n.ID
	}
	return ids, twice
}

func (r *rule) read(ids map[string]uint32, twice map[string]bool) (out inference.PolicyRule, err error) {
	var errs []error
	note := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	nodes := func(key string, list []string) (out []uint32) {
		for _, text := range list {
			id, err := strconv.ParseUint(text, 10, 32)
			if named, ok := ids[text]; ok {
				if id, err = uint64(named), nil; twice[text] {
					err = fmt.Errorf("several nodes are called %q: write the number", text)
				}
			} else if err != nil {
				err = fmt.Errorf("no node is called %.64q, neither in the inventory nor in the topology, and it is no number", text)
			}
			note(key, err)
			out = append(out, uint32(id))
		}
		return out
	}
	out.Name = r.Name
	out.Src, err = prefix(r.Src)
	note("src", err)
	out.Dst, err = prefix(r.Dst)
	note("dst", err)
	out.Protocol, err = protocol(r.Protocol)
	note("protocol", err)
	out.SrcPorts, err = ports(r.SrcPort)
	note("src_port", err)
	out.DstPorts, err = ports(r.DstPort)
	note("dst_port", err)
	if p := out.Protocol; (r.SrcPort != "" || r.DstPort != "") && p != 6 && p != 17 {
		note("protocol", errors.New("ports are those of tcp or udp: say which"))
	}
	for _, list := range r.Via {
		out.Via = append(out.Via, nodes("via", list))
	}
	out.Avoid = nodes("avoid", r.Avoid)
	for _, list := range r.Paths {
		out.Paths = append(out.Paths, nodes("paths", list))
	}
	return out, errors.Join(errs...)
}

// prefix reads a prefix or an address; none is any.
func prefix(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%.64q is no prefix such as 10.0.0.0/8, and no address", text)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%s has bits that are not compared: %s is meant, or an address", text, p.Masked())
	}
	return p, nil
}

func protocol(text string) (uint8, error) {
	switch strings.ToLower(text) {
	case "":
		return 0, nil
	case "tcp":
		return 6, nil
	case "udp":
		return 17, nil
	case "icmp":
		return 1, nil
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%.64q is none of tcp, udp, icmp and 1..255", text)
	}
	return uint8(n), nil
}

// ports reads "443" or "8000-8080".
func ports(text string) (p inference.Ports, err error) {
	if text == "" {
		return p, nil
	}
	from, to, several := strings.Cut(text, "-")
	if !several {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	if err != nil || err2 != nil || first > last || last == 0 {
		return p, fmt.Errorf("%.64q is no port from 1 to 65535, and no range such as 8000-8080", text)
	}
	return inference.Ports{First: uint16(first), Last: uint16(last)}, nil
}
