package names

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// The columns of decode --format table. Rows are written as they come, so the widths are those of usual values. A
// longer value moves the rest of its row to the right.
const rowFormat = "%-27s  %-15s  %-11s  %-45s  %s\n"

// AppendHeading appends what the columns are called.
func AppendHeading(dst []byte) []byte {
	return fmt.Appendf(dst, rowFormat, "TIME", "EXPORTER", "KIND", "FLOW", "PATH (NODE LATENCY, FIRST HOP FIRST)")
}

// AppendRow appends a report as a row for people. Times and latencies have their units, a path reads from left to
// right, and nodes and drop reasons have their names.
func AppendRow(dst []byte, r *decode.Report, n *Names) []byte {
	exporter, kind, flow := "-", "-", "-"
	if r.Has&decode.HasExporter != 0 {
		exporter = r.Exporter.String()
	}
	if r.Kind != 0 {
		kind = r.Kind.String()
	}
	if r.Has&decode.HasFlow != 0 {
		flow = r.Flow.String()
	}
	at := time.Unix(0, r.Time).UTC().Format("2006-01-02T15:04:05.000000Z")
	return fmt.Appendf(dst, rowFormat, at, exporter, kind, flow, rowPath(r, n))
}

// rowPath returns "101 5.42ms > 7 5.295ms > 65538", and other properties behind it.
func rowPath(r *decode.Report, n *Names) string {
	var hops, notes []string
	for i := range r.Hops {
		h := &r.Hops[i]
		s := "?"
		if h.Set(decode.HopNodeID) {
			s = n.Node(h.NodeID)
		}
		if ns, ok := r.Units.Latency(h); ok {
			s += " " + time.Duration(ns).String()
		}
		hops = append(hops, s)
	}
	if len(hops) == 0 && r.Has&decode.HasNodeID != 0 {
		hops = append(hops, n.Node(r.NodeID))
	}
	notes = r.Flags.AppendNames(notes)
	if r.Has&decode.HasDropReason != 0 {
		note := "reason " + strconv.Itoa(int(r.DropReason))
		if name := r.Units.DropReason(r.DropReason); name != "" && r.Format == decode.SFlow {
			note = "reason " + name // its own number is another one
		} else if name != "" && r.Format == decode.IPFIX {
			note = "reason " + name + " (" + strconv.Itoa(int(r.DropReason)) + ")"
		} else if name != "" {
			note += ": " + name
		} else if named := n.Reason(r.DropReason); named != strconv.Itoa(int(r.DropReason)) {
			note = "reason " + named
		}
		notes = append(notes, note)
	}
	if r.Has&decode.HasGap != 0 {
		notes = append(notes, strconv.FormatUint(uint64(r.Lost), 10)+" lost")
	}
	s := strings.Join(hops, " > ")
	if len(notes) > 0 {
		s += " [" + strings.Join(notes, ", ") + "]"
	}
	if err := r.Error(); err != nil {
		s += " error: " + err.Error()
	}
	return strings.TrimSpace(s)
}
