package events

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// path is a flow whose path changes, or all flows that had no place.
type path struct {
	changes uint64 // since the finding started
	last    uint64 // window of the last change
	finding *inference.Finding
}

func (d *Detector) stepPaths(w *inference.Window) {
	more := w.OtherPaths
	changes := d.groupPaths(w.Paths)
	for i := range changes {
		c := &changes[i]
		p := d.paths[c.Flow]
		if p == nil {
			if len(d.paths) >= d.cfg.MaxFlows {
				more++
				continue
			}
			p = &path{}
			d.paths[c.Flow] = p
		}
		p.changes++
		p.last = d.windows
		d.tellPath(p, c.Flow, func() string {
			t := fmt.Sprintf("%s left %s for %s after %d packets", c.Flow, pathText(c.From), pathText(c.To), c.Packets)
			if p.changes > 1 {
				t += fmt.Sprintf(", change %d", p.changes)
			}
			return t
		})
	}
	if more > 0 {
		p := &d.morePaths
		p.changes += more
		p.last = d.windows
		d.tellPath(p, decode.FlowKey{}, func() string {
			return fmt.Sprintf("%d changes of path in flows that are not listed one by one", p.changes)
		})
	}

	if p := &d.morePaths; p.finding != nil && d.windows-p.last >= uint64(d.cfg.PathStable) {
		d.end(p.finding, fmt.Sprintf("no more changes of path after %d in flows that are not listed one by one", p.changes))
		*p = path{}
	}
	d.endGroups()
	if len(d.paths) == 0 {
		return
	}
	for _, key := range ordered(d.paths, compareFlows) {
		if p := d.paths[key]; d.windows-p.last >= uint64(d.cfg.PathStable) {
			d.end(p.finding, fmt.Sprintf("path of %s is stable after %s", key, plural(p.changes, "change")))
			delete(d.paths, key)
		}
	}
}

// tellPath starts or updates the finding of p.
func (d *Detector) tellPath(p *path, flow decode.FlowKey, text func() string) {
	severity := inference.Info
	if p.changes >= uint64(d.cfg.PathFlaps) {
		severity = inference.Warning
	}
	if p.finding == nil {
		p.finding = d.start(inference.Finding{
			Kind: inference.PathChanged, Severity: severity, Flow: flow, Value: float64(p.changes), Text: text(),
		})
		return
	}
	d.update(p.finding, severity, float64(p.changes), 0, text())
}

// pathText writes the nodes of a path, and the interface by which it leaves them: "1:2-7:1".
func pathText(hops []inference.HopKey) string {
	const most = 16 // longer paths make no sentence
	var b []byte
	for i, h := range hops {
		if i == most {
			b = fmt.Appendf(b, "-(%d more)", len(hops)-most)
			break
		}
		if i > 0 {
			b = append(b, '-')
		}
		b = strconv.AppendUint(b, uint64(h.Node), 10)
		if h.EgressIf != 0 {
			b = strconv.AppendUint(append(b, ':'), uint64(h.EgressIf), 10)
		}
	}
	return string(b)
}

func compareFlows(a, b decode.FlowKey) int {
	if c := bytes.Compare(a.Src[:], b.Src[:]); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Dst[:], b.Dst[:]); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.SrcPort, b.SrcPort), cmp.Compare(a.DstPort, b.DstPort),
		cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.IPVersion, b.IPVersion))
}
