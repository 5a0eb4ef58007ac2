package inference

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// Bounds of a policy.
const (
	MaxPolicyRules = 1024
	MaxRuleNodes   = 64 // of a list in a rule: nodes of a path, alternatives, and so on
)

// Ports are those from First to Last. The zero value is all.
type Ports struct{ First, Last uint16 }

func (p Ports) has(port uint16) bool { return p == Ports{} || p.First <= port && port <= p.Last }

// PolicyRule states which ways the flows that it matches may take. It lists nodes that a path has to pass in their
// order, and nodes that it must not pass. It also lists whole paths, of which it has to be one. All conditions of a
// rule have to hold.
type PolicyRule struct {
	Name               string
	Src, Dst           netip.Prefix // not valid: any address
	Protocol           uint8        // 0: any
	SrcPorts, DstPorts Ports

	Via   [][]uint32 // nodes to be passed, in this order; of each entry one
	Avoid []uint32   // nodes not to be passed
	Paths [][]uint32 // the path is one of these; none: any
}

// Matches reports whether the rule is about a flow.
func (r *PolicyRule) Matches(k *decode.FlowKey) bool {
	return within(r.Src, k.SrcAddr()) && within(r.Dst, k.DstAddr()) && (r.Protocol == 0 || r.Protocol == k.Proto) &&
		r.SrcPorts.has(k.SrcPort) && r.DstPorts.has(k.DstPort)
}

func within(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a.Unmap()) }

// Policy holds the ways that flows may take: the path conformance of PINT (SIGCOMM 2020, section 3.2), for paths of
// whatever source. It is a list of rules, of which the first one that a flow matches counts; a flow that none matches
// may go anywhere. It never changes, so that many may ask it at the same time.
type Policy struct{ rules []PolicyRule }

// NewPolicy makes a policy of rules, which it keeps. The error names all rules that cannot be.
func NewPolicy(rules []PolicyRule) (*Policy, error) {
	var errs []error
	if len(rules) > MaxPolicyRules {
		return nil, fmt.Errorf("%d rules are more than %d", len(rules), MaxPolicyRules)
	}
	names := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		fail := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("rule %d (%s): %w", i+1, r.Name, fmt.Errorf(format, args...)))
		}
		switch {
		case r.Name == "" || len(r.Name) > MaxRuleName:
			fail("a name has 1 to %d bytes", MaxRuleName)
		case names[r.Name]:
			fail("there is another rule of this name")
		}
		names[r.Name] = true
		if len(r.Via)+len(r.Avoid)+len(r.Paths) == 0 {
			fail("it has none of via, avoid and paths, and forbids nothing")
		}
		if r.SrcPorts.First > r.SrcPorts.Last || r.DstPorts.First > r.DstPorts.Last {
			fail("ports end before they begin")
		}
		for _, list := range slices.Concat(r.Via, r.Paths, [][]uint32{r.Avoid}) {
			if len(list) > MaxRuleNodes {
				fail("a list of %d nodes is longer than %d", len(list), MaxRuleNodes)
			}
		}
		if len(r.Via) > MaxRuleNodes || len(r.Paths) > MaxRuleNodes {
			fail("more than %d entries in a list", MaxRuleNodes)
		}
		if slices.ContainsFunc(slices.Concat(r.Via, r.Paths), func(list []uint32) bool { return len(list) == 0 }) {
			fail("an entry of via or paths names no node")
		}
		for _, one := range r.Via {
			if !slices.ContainsFunc(one, func(n uint32) bool { return !slices.Contains(r.Avoid, n) }) {
				fail("node %d is to be passed and to be avoided", one[0])
			}
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return &Policy{rules}, nil
}

// Len is the number of rules.
func (p *Policy) Len() int {
	if p == nil {
		return 0
	}
	return len(p.rules)
}

// Judge returns in what the path of a flow breaks the first rule that is about it. A path without nodes, which is
// unknown, breaks none. It allocates nothing.
func (p *Policy) Judge(k *decode.FlowKey, path []HopKey) (key StrayKey, strays bool) {
	if p == nil || len(path) == 0 {
		return key, false
	}
	for i := range p.rules {
		if r := &p.rules[i]; r.Matches(k) {
			reason, node, strays := r.judge(path)
			return StrayKey{Rule: r.Name, Reason: reason, Node: node}, strays
		}
	}
	return key, false
}

// judge returns the rules that a path breaks.
func (r *PolicyRule) judge(path []HopKey) (reason StrayReason, node uint32, strays bool) {
	for _, h := range path {
		if slices.Contains(r.Avoid, h.Node) {
			return Forbidden, h.Node, true
		}
	}
	at := 0
	for _, one := range r.Via {
		for at < len(path) && !slices.Contains(one, path[at].Node) {
			at++
		}
		if at == len(path) {
			return Missed, one[0], true
		}
	}
	if len(r.Paths) == 0 {
		return 0, 0, false
	}
	common := 0 // nodes that the path has in common with the one that it leaves last
	for _, nodes := range r.Paths {
		n := 0
		for n < len(nodes) && n < len(path) && nodes[n] == path[n].Node {
			n++
		}
		if n == len(nodes) && n == len(path) {
			return 0, 0, false
		}
		common = max(common, n)
	}
	return Elsewhere, path[max(common, 1)-1].Node, true // the first one, if it does not even begin where it should
}
