package guess

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
)

// Interval chooses which frames without telemetry are tried. These are all frames while telemetry is found among
// them, and ever fewer in ordinary traffic.
type Interval struct {
	misses, skip int
	skipped      bool
}

// maxInterval is the largest distance of frames that are tried.
const maxInterval = 1024

// Next reports whether the next frame is to be tried.
func (v *Interval) Next() bool {
	if v.skip > 0 {
		v.skip--
		v.skipped = true
		return false
	}
	v.skip = v.misses
	return true
}

// Skipped reports whether any frame was passed over.
func (v *Interval) Skipped() bool { return v.skipped }

// Found resets the distance if the frame that Next chose was telemetry, and increases it if not.
func (v *Interval) Found(hit bool) {
	if hit {
		v.misses, v.skip = 0, 0
		return
	}
	v.misses = min(v.misses+1, maxInterval)
}

// Sender is the address that a frame comes from. It is not ok for a frame without an IP header.
func Sender(link uint16, data []byte, length int) (src decode.Addr, ok bool) {
	var p packet.Packet
	p.Frame(link, data, length)
	if p.IP == 0 {
		return src, false
	}
	return p.Src(data), true
}

// Look observes the frames of a file one by one, with the reports that the current profile made of each.
func (w *Watch) Look(current func(decode.Addr) *demux.Profile, x Sample, reports []*decode.Report) {
	if len(reports) == 0 {
		interval := &w.interval
		if w.guesser.known[udpPort(&x)] {
			interval = &w.likely // a hint where to look first, and nothing more
		}
		if !interval.Next() {
			return
		}
		src, ok := Sender(x.Link, x.Data, x.Length)
		if ok {
			x.Src, x.Dropped = src, true
			ok = w.Frame(current(src), x, interval.Skipped())
		}
		interval.Found(ok)
		return
	}
	last := reports[len(reports)-1]
	if alien := x.To.Alien(last); alien || last.Err.Reason == decode.NotRead {
		format := last.Format
		if alien && last.Err.Reason != decode.NotRead {
			format = 0
		}
		w.Foreign(last.Exporter, format, current(last.Exporter), x.To, 1, &x)
		return
	}
	doubtful := Doubtful(last)
	if !doubtful && !w.Watching() {
		return
	}
	src, ok := x.Src, true
	if last.Format == decode.IPFIX || last.Format == decode.NetFlow9 || last.Format == decode.TelemetryReport && last.Has&decode.HasExporter != 0 {
		src = last.Exporter
	} else if x.Link != Datagram {
		src, ok = Sender(x.Link, x.Data, x.Length)
	}
	switch {
	case !ok:
	case !doubtful:
		w.Read(src, 1)
	default:
		x = Within(last, x)
		x.Src, x.Dropped = src, last.Err.Reason != 0
		if w.Unread(src, current(src), 1, x.Dropped, x.Time) > 0 {
			w.Add(x)
		}
	}
}
