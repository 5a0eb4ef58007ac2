package inference

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/state"
)

// The functions below write hops, paths and identifiers in the one form used in series, findings, logs, on the page and
// on the command line. Their printed forms can be read by the parsing functions here. Flows are written and read by
// package decode.

// String returns "7:3", or "7" where the device did not name its egress interface, or "other".
func (k HopKey) String() string { return string(k.append(nil)) }

func (k HopKey) append(b []byte) []byte {
	if k.Other {
		return append(b, other...)
	}
	b = strconv.AppendUint(b, uint64(k.Node), 10)
	if k.EgressIf != 0 {
		b = strconv.AppendUint(append(b, ':'), uint64(k.EgressIf), 10)
	}
	return b
}

const other = "other"

// NodeName returns the node alone: "7", or "other".
func (k HopKey) NodeName() string { return k.part(k.Node) }

// EgressName returns the egress interface alone: "3", "0" where the device did not name it, or "other".
func (k HopKey) EgressName() string { return k.part(k.EgressIf) }

func (k HopKey) part(n uint32) string {
	if k.Other {
		return other
	}
	return strconv.FormatUint(uint64(n), 10)
}

// Place returns the hop as a part of a sentence: "node 7 interface 3", or "node 7".
func (k HopKey) Place() string {
	switch {
	case k.Other:
		return "other nodes"
	case k.EgressIf == 0:
		return fmt.Sprintf("node %d", k.Node)
	}
	return fmt.Sprintf("node %d interface %d", k.Node, k.EgressIf)
}

// ParseHop reads what [HopKey.String] and [HopKey.Place] write.
func ParseHop(s string) (HopKey, error) {
	text := strings.TrimSpace(s)
	if text == other || text == "other nodes" {
		return HopKey{Other: true}, nil
	}
	if rest, ok := strings.CutPrefix(text, "node "); ok {
		text = strings.Replace(rest, " interface ", ":", 1)
	}
	node, egress, both := strings.Cut(text, ":")
	n, err := strconv.ParseUint(node, 10, 32)
	e := uint64(0)
	if err == nil && both {
		e, err = strconv.ParseUint(egress, 10, 32)
	}
	if err != nil {
		return HopKey{}, fmt.Errorf("%q is no hop such as 7:3 (node 7, egress interface 3) or 7", s)
	}
	return HopKey{Node: uint32(n), EgressIf: uint32(e)}, nil
}

// Compare orders hops by node and egress interface, the one called other last.
func (k HopKey) Compare(o HopKey) int {
	if k.Other != o.Other {
		if k.Other {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(k.Node, o.Node), cmp.Compare(k.EgressIf, o.EgressIf))
}

// Compare orders exporters by address, node and hardware id, those of the node with the id 0 behind all others.
func (k ExporterKey) Compare(o ExporterKey) int {
	if c := compareBools(k.OfNode0(), o.OfNode0()); c != 0 {
		return c
	}
	if c := bytes.Compare(k.Addr[:], o.Addr[:]); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(k.Node, o.Node), cmp.Compare(k.HWID, o.HWID), compareBools(k.Nameless, o.Nameless))
}

// OfNode0 reports whether the reports of an address name the node with the id 0.
func (k ExporterKey) OfNode0() bool { return k.Node == 0 && !k.Nameless && k.Addr != decode.Addr{} }

// node0 stands in states for the node with the id 0, where 0 is none.
const node0 = 1 << 32

// NodeNumber returns the id of a node as states hold it, where 0 is no node: 2³² for the id 0.
func NodeNumber(node uint32) uint64 {
	if node == 0 {
		return node0
	}
	return uint64(node)
}

// NodeNumber returns the node as states encode it. It is 0 where none is named, as it always was, and 2³² for the node
// with the id 0. Earlier versions did not distinguish the two.
func (k ExporterKey) NodeNumber() uint64 {
	if k.OfNode0() {
		return node0
	}
	return uint64(k.Node)
}

// SetNodeNumber sets the node by the number of [ExporterKey.NodeNumber], behind the address, and reports whether it is
// one.
func (k *ExporterKey) SetNodeNumber(n uint64) bool {
	k.Node, k.Nameless = uint32(n), n == 0 && k.Addr != decode.Addr{}
	return n == k.NodeNumber()
}

// CodeNode codes the node behind the address.
func (k *ExporterKey) CodeNode(c *state.Coder) {
	n := k.NodeNumber()
	state.Uint(c, "exporter", &n)
	c.Check("exporter", k.SetNodeNumber(n))
}

// String returns "exporter 10.0.0.1 node 7 hardware 0". Without a node it is "exporter 10.0.0.1 hardware 2", or
// "exporter 10.0.0.1" where the hardware id is 0, too.
func (k ExporterKey) String() string {
	switch {
	case !k.Nameless:
		return fmt.Sprintf("exporter %s node %d hardware %d", k.Addr, k.Node, k.HWID)
	case k.HWID != 0:
		return fmt.Sprintf("exporter %s hardware %d", k.Addr, k.HWID)
	}
	return "exporter " + k.Addr.String()
}

// nodeSeparator separates the nodes of a path.
const nodeSeparator = " > "

// NodePath returns the nodes of a path, first hop first: "1 > 7 > 3".
func NodePath(hops []HopKey) string {
	var b []byte
	for i := range hops {
		if i > 0 {
			b = append(b, nodeSeparator...)
		}
		b = strconv.AppendUint(b, uint64(hops[i].Node), 10)
	}
	return string(b)
}

// JoinNodes is [NodePath] of names, for paths of which some nodes have none.
func JoinNodes(names []string) string { return strings.Join(names, nodeSeparator) }

// HopPath returns the nodes of a path and the interfaces by which it leaves them, first hop first: "1:2-7:1". Of a path
// that is too long for a sentence it returns the first hops and the number of the others.
func HopPath(hops []HopKey) string {
	const most = 16
	var b []byte
	for i, h := range hops {
		if i == most {
			b = fmt.Appendf(b, "-(%d more)", len(hops)-most)
			break
		}
		if i > 0 {
			b = append(b, '-')
		}
		b = h.append(b)
	}
	return string(b)
}

// ParsePath reads a path of either form, "1 > 7 > 3" or "1:2-7:1". An empty text is an empty path.
func ParsePath(s string) ([]HopKey, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	separator := "-"
	if strings.Contains(s, ">") {
		separator = ">"
	}
	var hops []HopKey
	for part := range strings.SplitSeq(s, separator) {
		h, err := ParseHop(part)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", s, err)
		}
		hops = append(hops, h)
	}
	return hops, nil
}

// FormatID returns the 16 hexadecimal digits of the identifier of a path or a finding.
func FormatID(id uint64) string {
	s := strconv.FormatUint(id, 16)
	return "0000000000000000"[len(s):] + s
}

// ParseID reads what [FormatID] writes; leading zeros may be left out.
func ParseID(s string) (uint64, error) {
	id, err := strconv.ParseUint(strings.TrimSpace(s), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no identifier of up to 16 hexadecimal digits", s)
	}
	return id, nil
}

// FlowText returns the text of a finding's flow, which is empty where no flow is meant.
func (f *Finding) FlowText() string {
	if f.Flow.IPVersion == 0 {
		return ""
	}
	return f.Flow.String()
}

// IDText returns the identifier of the finding as it is written everywhere.
func (f *Finding) IDText() string { return FormatID(f.ID) }

// PathText returns the path of the finding's flow, as [ParsePath] reads it; empty where it is not known.
func (f *Finding) PathText() string {
	var b []byte
	for i, h := range f.Path {
		if i > 0 {
			b = append(b, '-')
		}
		b = h.append(b)
	}
	return string(b)
}

// CauseText returns the identifier of the finding's cause, which is empty where it has none but itself.
func (f *Finding) CauseText() string {
	if f.Cause == 0 {
		return ""
	}
	return FormatID(f.Cause)
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
